from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from composite.compiler.tfr import constants, dialect
from composite.compiler.tfr.bindings import ir

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"])),
)


def through_text(value: object) -> object:
    """A constant written as MLIR text and read again."""
    text = str(constants.to_attribute(value))
    return constants.to_python(ir.Attribute.parse(text, dialect.context()))


@settings(deadline=None)
@given(SCALARS)
def test_scalars_round_trip(value: object) -> None:
    for again in (constants.to_python(constants.to_attribute(value)), through_text(value)):
        assert type(again) is type(value)
        if isinstance(value, float) and math.isnan(value):
            assert isinstance(again, float)
            assert math.isnan(again)
        else:
            assert again == value
            assert str(again) == str(value)  # -0.0 is not 0.0


ARRAYS = st_numpy.arrays(
    st.sampled_from([*constants.DENSE, "complex64", "complex128"]),
    st_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)


@settings(deadline=None)
@given(ARRAYS)
def test_arrays_round_trip_bit_for_bit(array: np.ndarray) -> None:
    for again in (constants.to_python(constants.to_attribute(array)), through_text(array)):
        assert isinstance(again, np.ndarray)
        assert (again.dtype, again.shape) == (array.dtype, array.shape)
        assert again.tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_extension_dtypes_round_trip(dtype: type) -> None:
    array: np.ndarray = np.array([[1.5, -2.0], [0.0, 3.0]], dtype)
    again = through_text(array)
    assert isinstance(again, np.ndarray)
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16, tf.string, tf.resource, tf.qint8])
def test_dtypes_round_trip(dtype: tf.DType) -> None:
    assert through_text(dtype) == dtype


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**63, "does not fit in 64 bits"),
        (np.array(["a"]), "dtype <U1"),
        (np.array([None]), "dtype object"),
        ([1], "a list cannot be a constant"),
        (1j, "a complex cannot be"),
    ],
)
def test_what_is_no_constant(value: object, message: str) -> None:
    with pytest.raises(constants.NotConstantError, match=message):
        constants.to_attribute(value)


def test_attr_values() -> None:
    def attr_value(value: object) -> object:
        return constants.to_attr_value(constants.to_attribute(value))

    assert attr_value(None).WhichOneof("value") is None  # type: ignore[attr-defined]
    assert attr_value(True).b is True  # type: ignore[attr-defined]
    assert attr_value(-3).i == -3  # type: ignore[attr-defined]
    assert attr_value("é").s == "é".encode()  # type: ignore[attr-defined]
    assert attr_value(tf.half).type == tf.half.as_datatype_enum  # type: ignore[attr-defined]
    for number in (0.5, np.float32(0.5), np.array([[1, 2]], np.int16), np.zeros((0, 2))):
        made = tf.make_ndarray(attr_value(number).tensor)  # type: ignore[attr-defined]
        assert made.dtype == np.asarray(number).dtype
        np.testing.assert_array_equal(made, number)


def test_a_large_array_round_trips() -> None:
    """MLIR prints more than a hundred elements in hexadecimal."""
    array: np.ndarray = np.arange(3000, dtype=np.float32).reshape(3, 1000)
    again = through_text(array)
    assert isinstance(again, np.ndarray)
    assert again.tobytes() == array.tobytes()
