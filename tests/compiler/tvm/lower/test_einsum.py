"""Einsum of one and two tensors against NumPy in float64, and what it refuses."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm import NotCovered

SIZES = {"b": 2, "t": 5, "s": 7, "h": 3, "d": 4, "n": 6}
EQUATIONS = [
    "td,dn->tn",
    "td,nd->tn",
    "dt,dn->nt",
    "btd,dn->btn",  # EinsumDense
    "btd,dhn->bthn",
    "bthd,hdn->btn",
    "bthd,bshd->bhts",  # attention: scores and values
    "bhts,bshd->bthd",
    "btd,bsd->tbs",
    "bth,bth->bt",  # no rows and columns
    "td,td->",
    "t,s->st",  # nothing is contracted
    "bt,t->tb",
    "bts,bs->bt",
    "bts,bsh->th",  # a sum over a label that is contracted with another
    "bts,hn->tn",
    "bthd->dhtb",
    "bthd->hb",
    "bt->",
    "b...d,dn->b...n",
    "...td,...sd->...ts",
    "...,...->...",
]


def shape_of(term: str, ellipsis: tuple[int, ...] = (2, 3)) -> tuple[int, ...]:
    before, dots, after = term.partition("...")
    inner = ellipsis if dots else ()
    return (*(SIZES[i] for i in before), *inner, *(SIZES[i] for i in after))


def arrays_of(equation: str, dtype: Any) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    terms = equation.partition("->")[0].split(",")
    if np.dtype(dtype).kind == "i":
        return [random.integers(-9, 9, shape_of(t)).astype(dtype) for t in terms]
    return [random.standard_normal(shape_of(t)).astype(dtype) for t in terms]


def einsum(equation: str) -> Any:
    return lambda *x: tf.raw_ops.Einsum(inputs=x, equation=equation)


@pytest.mark.parametrize("equation", EQUATIONS)
def test_equations(compiler: Any, equation: str) -> None:
    arrays = arrays_of(equation, np.float32)
    expected = np.einsum(equation, *(a.astype(np.float64) for a in arrays))
    loaded = compiler.compile(einsum(equation), arrays)
    (result,) = loaded(arrays, [expected.shape], [np.dtype(np.float32)])
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=2e-6)
    assert loaded.kernel.proof.is_complete, loaded.kernel.proof


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("equation", ["bthd,bshd->bhts", "btd,dhn->bthn", "bts,bs->bt", "bt->"])
def test_dtypes(compiler: Any, equation: str, dtype: Any) -> None:
    arrays = arrays_of(equation, dtype)
    wide = np.int32 if dtype is np.int32 else np.float64
    wider: list[Any] = [a.astype(wide) for a in arrays]
    expected = np.einsum(equation, *wider)
    loaded = compiler.compile(einsum(equation), arrays)
    (result,) = loaded(arrays, [expected.shape], [np.dtype(dtype)])
    rounding = 0.0 if dtype is np.int32 else float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(result.astype(wide), expected, rtol=rounding, atol=4 * rounding)


def test_broadcasting_of_ellipses(compiler: Any) -> None:
    random = np.random.default_rng(4)
    a = random.standard_normal((4, 1, 5, 3)).astype(np.float32)
    b = random.standard_normal((6, 3, 7)).astype(np.float32)
    compiler.compare(einsum("...ij,...jk->...ik"), a, b, rtol=1e-6, atol=1e-6)
    compiler.compare(einsum("...ij,...jk->k...i"), b, b[:1].swapaxes(1, 2), rtol=1e-6, atol=1e-6)


def test_unknown_sizes(compiler: Any) -> None:
    arrays = arrays_of("bthd,bshd->bhts", np.float32)
    shapes = [["s0", "s1", 3, 4], ["s0", "s2", 3, 4]]
    compiler.compare(einsum("bthd,bshd->bhts"), *arrays, shapes=shapes, rtol=1e-6, atol=1e-6)
    arrays = arrays_of("btd,dhn->bthn", np.float32)
    shapes = [["s0", "s1", 4], [4, 3, 6]]
    compiler.compare(einsum("btd,dhn->bthn"), *arrays, shapes=shapes, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("equation", ["bthd,bshd->bhts", "btd,dhn->bthn", "...td,...sd->...ts"])
def test_gradients(compiler: Any, equation: str) -> None:
    def gradient(a: Any, b: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([a, b])
            y = einsum(equation)(a, b)
            loss = tf.reduce_sum(y * y)
        return tape.gradient(loss, [a, b])

    compiler.compare(gradient, *arrays_of(equation, np.float32), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("equation", "shapes", "reason"),
    [
        ("ii->i", [(3, 3)], "a label twice in 'ii'"),
        ("ij,jk->ik", [(2, 3), ("s0", 2)], "Einsum: j: sizes 3 and s0 are not known to agree"),
    ],
)
def test_refused(compiler: Any, equation: str, shapes: Any, reason: str) -> None:
    arrays = [np.zeros([d if isinstance(d, int) else 3 for d in s], np.float32) for s in shapes]
    with pytest.raises(NotCovered, match=reason):
        compiler.compile(einsum(equation), arrays, shapes)
