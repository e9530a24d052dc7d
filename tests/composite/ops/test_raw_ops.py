"""A few dozen raw ops of every form, each as the body of a composite that runs.

That all of tf.raw_ops can be named is tested in tests/compiler/frontend/test_raw_ops.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite

pytestmark = pytest.mark.many_cases

_names = (f"TestRawOp{number}" for number in itertools.count())

F = tf.reshape(tf.range(12.0), [3, 4]) - 5.5
INTS = tf.constant([[3, 1], [0, 2]])
C = tf.complex(F, F * 2.0)
S = tf.constant(["one, two", "", "three"])
IMAGE = tf.reshape(tf.range(36.0), [1, 6, 6, 1])

# A call, with the inputs that it names.
CASES: list[tuple[Any, ...]] = [
    # inputs that are lists
    ("AddN(inputs=[x, y])", F, F),
    ("ConcatV2(values=[x, y, x], axis=0)", F, F),
    ("Pack(values=[x, y], axis=-1)", F, F),
    ("StringJoin(inputs=[x, x], separator='/')", S),
    ("IdentityN(input=[x, y, z])", F, INTS, S),
    ("ShapeN(input=[x, y], out_type=tf.int64)", F, F),
    ("ParallelDynamicStitch(indices=[[0, 2], [1]], data=[x, y])", [1.0, 2.0], [3.0]),
    ("Einsum(inputs=[x, y], equation='ij,kj->ik')", F, F),
    (
        "SparseConcat(indices=[x, x], values=[y, y], shapes=[z, z], concat_dim=0)",
        np.array([[0, 1]]),
        [2.0],
        np.array([1, 3]),
    ),
    # several outputs, and lists of them
    ("Split(axis=1, value=x, num_split=2)", F),
    ("SplitV(value=x, size_splits=[1, 3], axis=1, num_split=2)", F),
    ("Unpack(value=x, num=3)", F),
    ("TopKV2(input=x, k=2, sorted=True)", F),
    ("DynamicPartition(data=x, partitions=[0, 1, 0], num_partitions=2)", F),
    ("Switch(data=x, pred=True)[1]", F),
    (
        "FusedBatchNormV3(x=x, scale=y, offset=y, mean=y, variance=y, is_training=False)[0]",
        IMAGE,
        [2.0],
    ),
    ("BroadcastGradientArgs(s0=x, s1=y)", [2, 1], [3]),
    ("ListDiff(x=x, y=y)", [1, 2, 3], [2]),
    ("UniqueV2(x=x, axis=[0], out_idx=tf.int64)", [3, 1, 3]),
    # attributes that are lists, shapes, types, strings
    (
        "Conv2D(input=x, filter=y, strides=[1, 1, 1, 1], padding='SAME')",
        IMAGE,
        tf.ones([2, 2, 1, 3]),
    ),
    (
        "Conv2D(input=x, filter=y, strides=[1, 2, 2, 1], padding='EXPLICIT', "
        "explicit_paddings=[0, 0, 1, 0, 0, 1, 0, 0])",
        IMAGE,
        tf.ones([2, 2, 1, 3]),
    ),
    ("MaxPool(input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding='VALID')", IMAGE),
    ("Squeeze(input=x, axis=[0, -1])", IMAGE),
    ("EnsureShape(input=x, shape=[None, 4])", F),
    ("Empty(shape=[2, 0], dtype=tf.bfloat16, init=True)",),
    ("Cast(x=x, DstT=tf.uint8)", tf.abs(F)),
    ("Bitcast(input=x, type=tf.int32)", F),
    ("ParseTensor(serialized=x, out_type=tf.float32)", tf.io.serialize_tensor(F)),
    ("DecodeCSV(records=x, record_defaults=[[''], ['none']])", ["a,b", "c,"]),
    ("StringSplitV2(input=x, sep=', ')", S),
    ("StringFormat(inputs=[x, y], template='%s or %s', placeholder='%s')", INTS, F),
    ("RegexReplace(input=x, pattern='e', rewrite='E', replace_global=True)", S),
    ("AsString(input=x, precision=2, width=8)", F),
    ("StridedSlice(input=x, begin=[0, 1], end=[2, 4], strides=[1, 2], begin_mask=1)", F),
    ("LRN(input=x, depth_radius=2, bias=1.5, alpha=0.5)", IMAGE),
    ("QuantizeV2(input=x, min_range=-6.0, max_range=6.0, T=tf.qint8)[0]", F),
    ("MatMul(a=x, b=y, transpose_b=True)", F, F),
    # dtypes
    ("Complex(real=x, imag=x)", F),
    ("FFT2D(input=x)", C),
    ("IRFFT(input=x, fft_length=[6])", C),
    ("Angle(input=x)", C),
    ("BitwiseXor(x=x, y=y)", INTS, INTS),
    ("PopulationCount(x=x)", INTS),
    ("LogicalNot(x=x)", [True, False]),
    ("Qr(input=x, full_matrices=True)", F),
    ("Svd(input=x)[0]", F),
    # random numbers that depend on a seed
    ("StatelessRandomUniform(shape=[3], seed=x)", [1, 2]),
    ("StatelessRandomUniformFullInt(shape=x, seed=[1, 2], dtype=tf.uint64)", [3]),
    ("StatelessMultinomial(logits=x, num_samples=4, seed=[1, 2])", F),
    # a chain through a state that stays inside
    (
        "TensorListStack(input_handle=tf.raw_ops.TensorListFromTensor(tensor=x, element_shape=[4]),"
        " element_shape=[4], element_dtype=tf.float32)",
        F,
    ),
]


@pytest.fixture(autouse=True)
def _no_kernels() -> Iterator[None]:
    with composite.options(backend="tf"):
        yield


@pytest.mark.parametrize(("text", "inputs"), [(text, inputs) for text, *inputs in CASES])
def test_a_raw_op_in_a_body(text: str, inputs: list[Any], tmp_path: Path) -> None:
    tensors = [tf.convert_to_tensor(one) for one in inputs]
    parameters = "xyz"[: len(tensors)]
    file = tmp_path / "body.py"
    file.write_text(f"def body({', '.join(parameters)}):\n    return tf.raw_ops.{text}\n")
    namespace: dict[str, Any] = {"tf": tf, "np": np, "__name__": "body"}
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    expected = tf.nest.flatten(namespace["body"](*tensors))
    op = Composite(
        next(_names),
        inputs=[f"{name}: {one.dtype.name}" for name, one in zip(parameters, tensors, strict=True)],
        outputs=[f"o{index}: {one.dtype.name}" for index, one in enumerate(expected)],
    )(namespace["body"])
    specs = [tf.TensorSpec(None, one.dtype) for one in tensors]
    for call in (op, tf.function(op.__call__), tf.function(op.__call__, input_signature=specs)):
        results = tf.nest.flatten(call(*tensors))
        for one, wanted in zip(results, expected, strict=True):
            assert one.dtype == wanted.dtype
            np.testing.assert_array_equal(one, wanted)
