"""The C function of a kernel: what it takes, what it refuses, how much code it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from composite.compiler.tvm.codegen.entry import entry
from tests.compiler.tvm.conftest import library_of

SHAPE = (3, 4)
REFUSED = "an argument is none that it was compiled for"


@pytest.fixture
def load(compiler: Any, tmp_path: Path) -> Callable[..., Any]:
    """Loads the kernel of x + 1 by TVM, which calls it with tensors of its own."""

    def loaded(shape: tuple[int | str, ...]) -> Any:
        import tvm

        kernel = compiler.compile(lambda x: x + 1.0, [np.ones(SHAPE, np.float32)], [shape]).kernel
        path = tmp_path / "kernel.so"
        backend.link(kernel, path, runtime=None)
        return tvm.runtime.load_module(str(path))[kernel.name]

    return loaded


def tensor(array: np.ndarray[Any, Any]) -> Any:
    import tvm

    return tvm.runtime.tensor(array, tvm.cpu())


def numbers(shape: tuple[int, ...] = SHAPE, dtype: type = np.float32) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


@pytest.mark.parametrize("shape", [SHAPE, ("s0", 4)])
def test_tensors_of_tvm(load: Callable[..., Any], shape: tuple[int | str, ...]) -> None:
    result = tensor(np.zeros(SHAPE, np.float32))
    load(shape)(tensor(numbers()), result)
    np.testing.assert_array_equal(result.numpy(), numbers() + 1)


def test_data_that_begins_behind_its_address(load: Callable[..., Any]) -> None:
    whole, result = tensor(numbers((5, 4))), tensor(np.zeros(SHAPE, np.float32))
    part = whole._create_view(SHAPE, dtype="float32", relative_byte_offset=2 * 4 * 4)
    load(SHAPE)(part, result)
    np.testing.assert_array_equal(result.numpy(), numbers((5, 4))[2:] + 1)


@pytest.mark.parametrize("shape", [SHAPE, ("s0", 4)])
@pytest.mark.parametrize(
    "given",
    [
        numbers((3, 5)),
        numbers((4, 3)),
        numbers((3, 4, 1)),
        numbers((12,)),
        numbers(dtype=np.float64),
        numbers(dtype=np.int32),
    ],
    ids=["a dim", "two dims", "a further dim", "a dim less", "wider", "integers"],
)
def test_another_tensor_is_refused(
    load: Callable[..., Any], shape: tuple[int | str, ...], given: np.ndarray[Any, Any]
) -> None:
    kernel, result = load(shape), tensor(np.zeros(SHAPE, np.float32))
    with pytest.raises(TypeError, match=REFUSED):
        kernel(tensor(given), result)
    with pytest.raises(TypeError, match=REFUSED):
        kernel(tensor(numbers()), tensor(given))
    np.testing.assert_array_equal(result.numpy(), 0)


@pytest.mark.parametrize("rows", [1, 3, 6, 64])
def test_dims_that_only_together_are_others_are_refused(
    load: Callable[..., Any], rows: int
) -> None:
    """Numbers whose bits would take one another's places."""
    kernel = load((2, 384))
    for columns in (128, 256, 640, 768 // rows, 384 ^ ((rows ^ 2) << 7)):
        given = tensor(np.zeros((rows, columns), np.float32))
        with pytest.raises(TypeError, match=REFUSED):
            kernel(given, given)


def test_a_symbol_has_one_value(load: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=REFUSED):
        load(("s0", 4))(tensor(numbers()), tensor(numbers((2, 4))))


def test_what_is_no_tensor_is_refused(load: Callable[..., Any]) -> None:
    kernel, given = load(SHAPE), tensor(numbers())
    for arguments in [(given,), (given, given, given), (given, 1), (1.0, given), (None, given)]:
        with pytest.raises(TypeError, match=REFUSED):
            kernel(*arguments)


def test_each_argument_adds_three_lines() -> None:
    """One loop checks all of them: what is left is where their elements lie."""

    def lines(count: int) -> int:
        specs = [tf.TensorSpec((4, 5, 6, 7), tf.float32)] * count
        written = backend.write(library_of(lambda *x: tf.add_n(x), specs), [specs[0].shape] * count)
        (function,) = written.module.functions.values()
        return len(entry(function).script().splitlines()) - len(function.script().splitlines())

    assert lines(40) - lines(20) <= 3 * 20
