"""Arguments of calls, bound as TensorFlow 2.21 binds those of its own ops."""

import numpy as np
import pytest
import tensorflow as tf

from composite.binding.records import AttrValue
from composite.ops import call, call_arguments

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.ones((3, 2), np.float32)


def test_bind_derives_attributes_and_checks_them():
    bound = call_arguments.bind(call.op_def("AddN"), {"inputs": [A, A]})
    assert bound.attrs["N"].i == 2
    assert bound.attrs["T"].type == tf.float32.as_datatype_enum
    assert bound.structure == [None]
    with pytest.raises(TypeError, match="num_split"):
        call_arguments.bind(call.op_def("Split"), {"split_dim": 0, "value": A})
    with pytest.raises(TypeError, match="extra"):
        call_arguments.bind(call.op_def("AddN"), {"inputs": [A], "extra": 1})


def test_keywords_undo_flattening():
    definition = call.op_def("ConcatV2")
    attrs = {"N": AttrValue(i=2), "T": AttrValue(type=1), "Tidx": AttrValue(type=3)}
    derived = call_arguments.inferred(definition)
    assert sorted(derived) == ["N", "T", "Tidx"]
    assert call_arguments.keywords(definition, derived, attrs, [A, B, 0]) == {
        "values": [A, B],
        "axis": 0,
    }


def test_flat_outputs_get_their_structure_back():
    assert call_arguments.structured([], []) is None
    assert call_arguments.structured([1], [None]) == 1
    assert call_arguments.structured([1, 2, 3, 4], [None, 2, None]) == (1, [2, 3], 4)
    assert call_arguments.structured([1, 2], [2]) == [1, 2]


@pytest.mark.parametrize(
    "given", [[1.0, 2.0], tf.constant([1.0, 2.0]), np.array([1, 2], np.float32)]
)
def test_an_attribute_that_is_a_tensor_takes_what_is_known(given):
    bound = call_arguments.bind(call.op_def("Const"), {"value": given, "dtype": tf.float32})
    np.testing.assert_array_equal(tf.make_ndarray(bound.attrs["value"].tensor), [1, 2])
