"""Ops whose inputs and outputs are of every form that an OpDef has."""

import tensorflow as tf

from composite import Composite


@Composite(
    "TestLists",
    inputs=["xs: N * T", "ys: M * float", "z: T"],
    derived_attrs=["N: int >= 2", "T: {float, int32, string}", "M: int >= 0"],
    outputs=["first: T", "all: N * T", "count: int32", "rest: M * float"],
)
def lists(xs, ys, z):
    """Two lists of one type each, and a tensor of the first's type."""
    return xs[0], [tf.identity(x) for x in xs[:-1]] + [z], len(ys), [y * 2.0 for y in ys]


@Composite(
    "TestTypeLists",
    inputs=["xs: Ts", "ys: Us"],
    derived_attrs=["Ts: list({float, int32, string}) >= 1", "Us: list(type) >= 0"],
    outputs=["turned: Us", "kept: Ts"],
)
def type_lists(xs, ys):
    """Two lists of several types each."""
    return list(ys), [tf.reshape(x, [-1]) for x in xs]


@Composite(
    "TestNoInputs",
    attrs=["shape: shape", "dtype: type = DT_FLOAT"],
    outputs=["y: dtype"],
)
def no_inputs(shape, dtype):
    """Ones of a shape."""
    return tf.ones(shape, dtype)


@Composite("TestNoOutputs", inputs=["variable: resource", "x: T"], derived_attrs=["T: type"])
def no_outputs(variable, x):
    """Add to a variable."""
    tf.raw_ops.AssignAddVariableOp(resource=variable, value=x)


@Composite(
    "TestRead",
    inputs=["variable: resource"],
    attrs=["dtype: type"],
    outputs=["y: dtype", "shape: int64"],
)
def read(variable, dtype):
    """Read a variable."""
    value = tf.raw_ops.ReadVariableOp(resource=variable, dtype=dtype)
    return value, tf.shape(value, out_type=tf.int64)


@Composite(
    "TestAnyType",
    inputs=["x: T"],
    derived_attrs=["T: type"],
    outputs=["y: T", "z: T", "size: int32"],
)
def any_type(x):
    """What ops of every type there are."""
    return tf.identity(x), tf.reshape(tf.expand_dims(x, 0), tf.shape(x)), tf.size(x)


@Composite(
    "TestVariant", inputs=["xs: N * T"], derived_attrs=["N: int", "T: type"], outputs=["y: variant"]
)
def variant(xs):
    """A list of tensors in one tensor."""
    handle = tf.raw_ops.EmptyTensorList(
        element_shape=-1, max_num_elements=-1, element_dtype=xs[0].dtype
    )
    for x in xs:
        handle = tf.raw_ops.TensorListPushBack(input_handle=handle, tensor=x)
    return handle


@Composite(
    "TestManyOutputs",
    inputs=["x: T", "axis: int32"],
    attrs=["parts: int >= 1 = 2"],
    derived_attrs=["T: numbertype"],
    outputs=["parts_of_x: parts * T", "sums: parts * T"],
)
def many_outputs(x, axis, parts):
    """Lists whose lengths an attribute gives."""
    pieces = tf.raw_ops.Split(axis=axis, value=x, num_split=parts)
    return pieces, [tf.reduce_sum(piece) for piece in pieces]
