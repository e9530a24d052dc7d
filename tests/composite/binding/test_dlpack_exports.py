"""Memory that another library was given is read in each call: that library may write to it."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from tests.sharing.test_weights import CALLS, call_in_turn, counted, new_op, normal
from tests.unmeasured import kernels_serve

SIZE = 64


def written(array: Any) -> Any:
    """What an array holds that NumPy would not have us write."""
    numbers = (ctypes.c_float * array.size).from_address(array.ctypes.data)
    return np.frombuffer(numbers, np.float32).reshape(array.shape)


@pytest.mark.parametrize("way", ["to_dlpack", "__dlpack__"])
@pytest.mark.parametrize("of_whole", [False, True])
def test_weights_that_another_library_writes_to(way: str, of_whole: bool) -> None:
    op = new_op(f"Exports{way.title().replace('_', '')}{of_whole}")
    tried: list[Any] = []  # one that has the address of one that was given away is not packed
    before = counted()
    with kernels_serve():
        while counted() == before and len(tried) < 5:
            tried.append(normal(2, SIZE, SIZE, seed=len(tried)))
            w = tried[-1][1]
            call_in_turn(op, [w], 2 * CALLS)
        assert counted() == before + 1
        given = tried[-1] if of_whole else w
        if way == "to_dlpack":
            array = np.from_dlpack(_Capsule(tf.experimental.dlpack.to_dlpack(given)))
        else:
            array = np.from_dlpack(given)
        call_in_turn(op, [w])
        written(array)[:] *= -0.5
        call_in_turn(op, [w])
        composite.wait()
        assert counted() == before + 1


class _Capsule:
    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0
