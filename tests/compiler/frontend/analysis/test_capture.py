"""Captured objects: what becomes a constant of the op is what Python has, the rest is refused."""

from __future__ import annotations

import collections
import enum
import itertools
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import Composite
from composite.compiler.source import CompositeSyntaxError


class Doubled(float):
    def __add__(self, other: float) -> float:
        return float(self) * 2 + other


class Loud(str):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


class Odd(int):
    def __bool__(self) -> bool:
        return False


class Reversed(np.ndarray):
    def __mul__(self, other: Any) -> Any:
        return np.asarray(self)[::-1] * other


class Mode(enum.Enum):
    FAST = "fast"
    EXACT = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


Pair = collections.namedtuple("Pair", "a b")

_numbers = itertools.count()


def op(value: Any) -> Any:
    @Composite(f"Captured{next(_numbers)}", inputs=["x: double"], outputs=["y: double"])
    def body(x):
        return x * value

    return body


REFUSED = {
    "float": (Doubled(1.0), "a Doubled is a float with operators of its own"),
    "str": (Loud("a"), "a Loud is a str with operators of its own"),
    "int": (Odd(1), "a Odd is a int with operators of its own"),
    "ndarray": (np.ones([2]).view(Reversed), "a Reversed is a ndarray with operators of its own"),
    "matrix": (np.matrix([[1.0]]), "convert it at the top of the module, with np.asarray(...)"),
    "masked": (np.ma.array([1.0, 2.0], mask=[False, True]), "operators of its own"),
    "namedtuple": (Pair(1, 2), "a Pair is a tuple with operators of its own"),
    "enum": (Mode.FAST, "a member of the enum Mode is not a constant of an op: write `.value`"),
    "int_enum": (Level.HIGH, "a member of the enum Level is not a constant of an op"),
    "in_a_tuple": ((1, Doubled(2.0)), "operators of its own"),
    "long_double": (np.ones([2], np.longdouble), "a NumPy array of dtype"),
    "long_complex": (np.ones([2], np.clongdouble), "a NumPy array of dtype"),
    "time": (np.datetime64("2020-01-01"), "a NumPy array of dtype"),
    "time_type": (np.datetime64, "TensorFlow has no dtype for np.datetime64"),
    "long_type": (np.longdouble, "TensorFlow has no dtype for np.longdouble"),
    "abstract_type": (np.floating, "TensorFlow has no dtype for np.floating"),
    "objects": (np.array([None]), "a NumPy array of dtype object"),
    "surrogate": ("\ud800", "cannot be encoded"),
}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_has_operators_of_its_own_is_refused(name: str) -> None:
    value, message = REFUSED[name]
    with pytest.raises(CompositeSyntaxError) as error:
        op(value)
    assert message in str(error.value.msg)
    assert "`value`" in str(error.value.msg)


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4", ">i8", ">f2", ">u2", "<f8"])
def test_the_order_of_bytes_is_the_machines(dtype: str) -> None:
    value = np.array([1.5, 2.0, 259.0]).astype(dtype)

    @Composite(f"Captured{next(_numbers)}", inputs=["x: double"], outputs=["y: double"])
    def body(x):
        return x * tf.cast(value, tf.float64)

    np.testing.assert_array_equal(body([1.0, 2.0, 3.0]), value.astype(np.float64) * [1, 2, 3])


def test_the_value_of_a_member_of_an_enum() -> None:
    @Composite("CapturedMode", inputs=["x: double"], outputs=["y: double"])
    def body(x):
        if Mode.FAST.value == "fast" and Level.HIGH.name == "HIGH":
            return x * Mode.EXACT.value + Level.HIGH.value
        return x

    np.testing.assert_array_equal(body([1.0, 2.0]), body.python_function(np.array([1.0, 2.0])))


@pytest.mark.parametrize("value", [np.float64(0.5), np.int32(3), True, 2, 0.5, np.ones([2])])
def test_what_is_exactly_a_number_is_a_constant(value: Any) -> None:
    x = tf.constant([1.0, 2.0], tf.float64)
    if isinstance(value, np.int32):
        value = float(value)
    if value is True:
        value = int(value)
    np.testing.assert_array_equal(op(value)(x), x * value)
