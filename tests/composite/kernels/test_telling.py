"""New kernels are checked at sizes that take each of their branches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.aot import stated_calls
from composite.compiler.tvm.target import Target
from composite.kernels import produce, verify
from composite.kernels.samples import Sample, Samples
from tests.compiler.tvm.conftest import library_of

Array = np.ndarray[Any, Any]
MANY = 100


@composite.Composite("TellingSums", inputs=["x: T"], derived_attrs=["T: {float}"], outputs=["y: T"])
def running_sums(x: Any) -> Any:
    return tf.cumsum(x, 1)


def wrong_for_many_rows(sample: Sample) -> Iterator[tuple[int, list[Array]]]:
    """What a kernel gives whose loop for several threads leaves out the last row."""
    with np.errstate(all="ignore"):
        y = np.cumsum(sample.inputs[0], axis=1, dtype=np.float32)
    if len(y) > MANY:
        y[-1] = 77
    yield 1, [y]


@pytest.mark.slow
def test_a_kernel_that_is_wrong_in_one_branch_is_refused() -> None:
    (request,) = stated_calls.requests(running_sums, {"x": ("float32", ("n", 21))})
    kernel = produce.compile_object(request, Target.of("x86-64-v3", 2), "sums")
    assert max(kernel.telling)[0] > MANY
    few = produce.oracle(request, kernel.minimums, kernel.divisors)
    few.compare(wrong_for_many_rows)
    every = produce.oracle(request, kernel.minimums, kernel.divisors, telling=kernel.telling)
    with pytest.raises(verify.Mismatch, match=f"at \\[{max(kernel.telling)[0] - 1}, "):
        every.compare(wrong_for_many_rows)


def samples_of(body: Any, *further: tuple[int, ...]) -> list[Sample]:
    def expansion(_: Any) -> Any:
        return library_of(body, [tf.TensorSpec([None, 3])])

    return list(Samples(expansion, [[(4, 3)]], further=[[one] for one in further]))


def test_further_sizes_have_ordinary_and_small_inputs() -> None:
    found = samples_of(tf.tanh, (9, 3), (1, 3), (4, 3))
    own = [(s.shapes[0], s.draw.kind) for s in found[-4:]]
    kinds = ("ordinary inputs", "small inputs")
    assert own == [(shape, kind) for shape in ((9, 3), (1, 3)) for kind in kinds]
    assert sum(s.shapes == [(4, 3)] for s in found) == len(found) - 4


def test_further_sizes_that_the_body_does_not_take_are_left_out() -> None:
    def body(x: Any) -> Any:
        return tf.reshape(x, tf.stack([4, tf.size(x) // 4]))

    found = samples_of(body, (5, 3), (8, 3))
    assert {s.shapes[0] for s in found} == {(4, 3), (8, 3)}
