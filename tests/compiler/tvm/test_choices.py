"""What strategies let others choose: the default is theirs, and every choice is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from composite.compiler.tvm.choices import Choices, Knob
from tests.compiler.tvm.conftest import check, library_of
from tests.compiler.tvm.read.cells import cells, lstm


def test_without_a_choice_the_default_is_taken() -> None:
    choices = Choices()
    assert choices.choose("tile", (1, 2, 4), 2) == 2
    assert choices.choose("tile", (1, 2, 4), 2) == 2
    assert choices.knobs == (Knob("tile", (2, 1, 4), 2),)
    assert choices.settled == {"tile": 2}


def test_a_default_is_always_a_candidate() -> None:
    choices = Choices({"tile": 3})
    assert choices.choose("tile", (1, 2), 3) == 3
    assert choices.knobs[0].candidates == (3, 1, 2)


def test_what_is_given_is_chosen_where_it_is_a_candidate() -> None:
    choices = Choices({"tile": 4, "order": "sideways", "colour": 1})
    assert choices.choose("tile", (1, 2, 4), 2) == 4
    assert choices.choose("order", ("up", "down"), "up") == "up"
    assert choices.settled == {"tile": 4, "order": "up"}


def test_one_name_with_other_candidates_is_another_knob() -> None:
    choices = Choices({"tile#2": 8})
    assert choices.choose("tile", (1, 2), 2) == 2
    assert choices.choose("tile", (4, 8), 4) == 8
    assert choices.choose("tile", (1, 2), 2) == 2
    assert [knob.name for knob in choices.knobs] == ["tile", "tile#2"]


def test_with_one_candidate_there_is_nothing_to_choose() -> None:
    choices = Choices({"tile": 2})
    assert choices.choose("tile", (2,), 2) == 2
    assert choices.knobs == ()
    assert choices.settled == {}


def dense(transpose: bool) -> Any:
    def function(x: Any, w: Any, b: Any) -> Any:
        return tf.nn.relu(tf.matmul(x, w, transpose_b=transpose) + b)

    return function


def operands(m: int, k: int, n: int, transpose: bool) -> list[np.ndarray]:
    random = np.random.default_rng(m)
    shapes = [(m, k), (n, k) if transpose else (k, n), (n,)]
    return [random.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]


def written(
    arrays: list[np.ndarray], shapes: Any, transpose: bool, **options: Any
) -> backend.Written:
    specs = [
        tf.TensorSpec([d if isinstance(d, int) else None for d in s], a.dtype)
        for a, s in zip(arrays, shapes, strict=True)
    ]
    return backend.write(library_of(dense(transpose), specs), shapes, **options)


def covering(knobs: tuple[Knob, ...]) -> list[dict[str, Any]]:
    """A few choices, in which each knob takes its first eight candidates at least."""
    most = min(8, max(len(knob.candidates) for knob in knobs))
    return [{k.name: k.candidates[i % len(k.candidates)] for k in knobs} for i in range(1, most)]


CASES = {
    "dots": ((2, 70, 100), None, True, ()),
    "axpy": ((3, 70, 200), None, False, ()),
    "wide": ((37, 600, 150), None, False, ()),
    "rows": ((130, 90, 70), None, True, ()),
    "packed": ((100, 300, 130), None, False, (1,)),
    "symbolic": ((50, 64, 96), [("s0", 64), (96, 64), (96,)], True, ()),
}


@pytest.mark.parametrize("case", CASES)
def test_every_choice_computes_the_same(compiler: Any, case: str) -> None:
    (m, k, n), shapes, transpose, constants = CASES[case]
    arrays = operands(m, k, n, transpose)
    shapes = shapes or [a.shape for a in arrays]
    expected = dense(transpose)(*(a.astype(np.float64) for a in arrays)).numpy()
    default = written(arrays, shapes, transpose, constants=constants)
    digests = {default.digest}
    for choices in covering(default.knobs):
        loaded = compiler.compile(
            dense(transpose), arrays, shapes, constants=constants, choices=choices
        )
        (found,) = loaded(arrays, [(m, n)], [np.dtype(np.float32)])
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4, err_msg=str(choices))
        again = written(arrays, shapes, transpose, constants=constants, choices=choices)
        assert again.choices == loaded.kernel.choices
        digests.add(again.digest)
    assert len(digests) > 2  # and they are other kernels


def test_the_default_is_the_kernel_without_choices() -> None:
    arrays = operands(32, 64, 96, True)
    shapes = [a.shape for a in arrays]
    plain = written(arrays, shapes, True)
    assert plain.digest == written(arrays, shapes, True, choices=plain.choices).digest
    assert plain.choices == {knob.name: knob.default for knob in plain.knobs}
    assert "0.gemm.tile" in plain.choices
    one, other = (w.generate("k").objects for w in (plain, written(arrays, shapes, True)))
    assert one == other


def test_a_choice_that_there_is_not_is_an_error() -> None:
    arrays = operands(32, 64, 96, True)
    library = library_of(dense(True), [tf.TensorSpec(a.shape, a.dtype) for a in arrays])
    shapes = [a.shape for a in arrays]
    with pytest.raises(ValueError, match=r"0.gemm.tile='big' is no choice.*0.gemm.tile: .*6x"):
        backend.compile(library, shapes, choices={"0.gemm.tile": "big"})
    kernel = backend.compile(library, shapes, choices={"0.gemm.unroll": 2})
    assert kernel.choices["0.gemm.unroll"] == 2


def test_every_choice_of_a_loop_computes_the_same(compiler: Any) -> None:
    arrays = cells(5, 4, 20, 24, 4)
    shapes = [a.shape for a in arrays]
    library = library_of(lstm, [tf.TensorSpec(a.shape, a.dtype) for a in arrays])
    default = backend.write(library, shapes)
    # Of the product in front of the loop, and of the one within it.
    assert {k.name.partition(".")[0] for k in default.knobs if "gemm.tile" in k.name} == {"0", "1"}
    expected = lstm(*map(tf.constant, arrays))
    digests = set()
    for choices in covering(default.knobs)[:5]:
        loaded = compiler.compile(lstm, arrays, choices=choices, tasks=1)
        check(loaded, arrays, expected, rtol=1e-5, atol=1e-5)
        digests.add(backend.write(library, shapes, choices=choices).digest)
    assert len(digests) == 5


def normalized(x: Any, g: Any) -> Any:
    centred = x - tf.reduce_mean(x, axis=-1, keepdims=True)
    return tf.tanh(centred * tf.math.rsqrt(tf.reduce_mean(centred * centred, -1, True) + 1e-3) * g)


def activated(x: Any, g: Any) -> Any:
    return tf.sigmoid(x * g + 1.0) * tf.tanh(x)


@pytest.mark.parametrize("function", [normalized, activated])
def test_every_choice_over_rows_and_elements_computes_the_same(
    compiler: Any, function: Any
) -> None:
    random = np.random.default_rng(0)
    arrays = [random.uniform(-1, 1, shape).astype(np.float32) for shape in [(300, 70), (70,)]]
    shapes: list[Any] = [("s0", 70), (70,)]
    specs = [tf.TensorSpec([None, 70]), tf.TensorSpec([70])]
    library = library_of(function, specs)
    for choices in covering(backend.write(library, shapes).knobs):
        loaded = compiler.compile(function, arrays, shapes, choices=choices)
        for rows in (1, 7, 300):
            some = [arrays[0][:rows], arrays[1]]
            check(loaded, some, [function(*map(tf.constant, some))], rtol=1e-5, atol=1e-5)
