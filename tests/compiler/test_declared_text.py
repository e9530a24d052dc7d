"""What signatures, help and stubs say of an op is what its author declared."""

from __future__ import annotations

import inspect
import pydoc
import typing

import numpy as np
import pytest
import tensorflow as tf

from composite import Composite


@Composite(
    "DeclaredText",
    inputs=["x: T", "xs: N * T", "bias: float"],
    attrs=[
        'act: {"", "RELU", "TANH"} = ""',
        "rate: float = 0.1",
        "k: int >= 1",
        "ks: list(int) = [1, 2]",
        "d: {int32, int64} = DT_INT32",
        "flag: bool = true",
        "rates: list(float) = [0.1, 1e-7]",
    ],
    derived_attrs=["T: {float, double, half, bfloat16}", "N: int >= 1"],
    outputs=["o: T", "p: N * T"],
)
def declared(x, xs, bias, act, rate, k, ks, d, flag, rates):  # noqa: PLR0917
    """Do something.

    In two lines.
    """
    return (x * rate if flag else -x) * k * rates[0], [one * ks[1] for one in xs]


def test_the_docstring_ends_with_the_declaration() -> None:
    assert declared.doc == "Do something.\n\nIn two lines."
    assert declared.__doc__ == (
        declared.doc
        + """

DeclaredText(x, xs, bias, *, act, rate, k, ks, d, flag, rates)
    input x: T in {float, double, half, bfloat16}
    input xs: N * T in {float, double, half, bfloat16}
    input bias: float
    attribute act: {'', 'RELU', 'TANH'} = ''
    attribute rate: float = 0.1
    attribute k: int >= 1
    attribute ks: list(int) = [1, 2]
    attribute d: {int32, int64} = int32
    attribute flag: bool = true
    attribute rates: list(float) = [0.1, 1e-07]
    derived attribute T: {float, double, half, bfloat16}
    derived attribute N: int >= 1
    output o: T in {float, double, half, bfloat16}
    output p: N * T in {float, double, half, bfloat16}"""
    )


def test_help_shows_it() -> None:
    text = pydoc.plain(pydoc.render_doc(declared))
    assert "attribute act: {'', 'RELU', 'TANH'} = ''" in text
    assert "Do something." in text


def test_the_signature_has_types_and_defaults_as_they_were_written() -> None:
    text = str(inspect.signature(declared))
    assert "rate: float = 0.1," in text
    assert "Literal['', 'RELU', 'TANH'] = ''" in text
    assert "rates: collections.abc.Sequence[float] = [0.1, 1e-07]" in text
    assert "'T in {float, double, half, bfloat16}'" in text
    hints = typing.get_type_hints(declared)
    assert hints["act"] == typing.Literal["", "RELU", "TANH"]
    assert hints["rate"] is float
    assert hints["k"] is int
    assert hints["d"] is typing.Any


def test_the_python_function_is_called_as_the_op_is() -> None:
    x, xs = tf.constant([1.5, -2.0]), [tf.constant([3.0])]
    for attrs in ({"k": 2}, {"k": 1, "flag": False}, {"k": 3, "rate": 0.5, "ks": [1, 7]}):
        (o, p), (q, r) = (
            declared(x, xs, 0.0, **attrs),
            declared.python_function(x, xs, 0.0, **attrs),
        )
        np.testing.assert_array_equal(o, q)
        np.testing.assert_array_equal(p[0], r[0])
    o, _ = declared.python_function(x, xs, 0.0, "", 0.5, 1, [1, 2], tf.int32, True, [1.0])
    np.testing.assert_array_equal(o, x * 0.5)
    with pytest.raises(TypeError, match="k"):
        declared.python_function(x, xs, 0.0)
    with pytest.raises(TypeError, match="unknown"):
        declared.python_function(x, xs, 0.0, k=1, unknown=2)


def test_a_function_with_defaults_of_its_own_is_itself() -> None:
    def body(x, k=2):
        return x * k

    op = Composite("DeclaredOwn", inputs=["x: float"], attrs=["k: int = 2"], outputs=["y: float"])
    assert op(body).python_function is body
