"""Records: Python values to attributes and back."""

import numpy as np
import pytest
import tensorflow as tf

from composite.binding.records import (
    NodeDef,
    attr_value,
    python_value,
    python_values,
    record,
    serialize,
)


@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        0,
        -(2**63),
        0.5,
        "",
        "text",
        b"\xff\xfe",
        tf.bfloat16,
        [],
        [1, 2],
        [True, False],
        ["a", "b"],
        [tf.float32, tf.int64],
        [0.5, 1.5],
    ],
)
def test_values_come_back(value):
    found = python_value(attr_value(value))
    assert found == value
    assert type(found) is type(value)


def test_shapes_and_tensors_come_back():
    shape = tf.TensorShape([2, None])
    assert python_value(attr_value(shape)).as_list() == [2, None]
    assert python_value(attr_value([shape, tf.TensorShape(None)]))[1].rank is None
    array = np.arange(6, dtype=np.int64).reshape(2, 3)
    np.testing.assert_array_equal(tf.make_ndarray(python_value(attr_value(array))), array)
    assert python_value(attr_value([tf.make_tensor_proto(array)]))[0].dtype == tf.int64
    assert python_value(NodeDef().attr["x"]) is None


def test_what_has_no_attribute_is_an_error():
    with pytest.raises(TypeError, match="no attribute value can hold a object"):
        attr_value(object())


def test_records_are_ordered_and_deterministic():
    one, two = record(op="Op", b=1, a="x"), record(op="Op", a="x", b=1)
    assert list(python_values(one)) == ["a", "b"]
    assert serialize(one) == serialize(two)
