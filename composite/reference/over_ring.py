"""Runs an expansion over the ring in which kernels are equal to it bit for bit.

The bits of floats are elements of the ring ([proofs.md]). What moves data is TensorFlow's own op,
which leaves bits as they are; what computes is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from composite.compiler import op_traits
from composite.compiler.tvm.algebra import ring
from composite.compiler.tvm.errors import NotCovered
from composite.ops import call, functions
from composite.reference import floats, ring_elementwise, ring_sums, ring_windows
from composite.reference.evaluate import Evaluator

Array = np.ndarray[Any, Any]

OPS = ring_elementwise.OPS | ring_sums.OPS | ring_windows.OPS


def drawn(like: Array, random: np.random.Generator) -> Array:
    """Any bits in the place of floats; integers, which may be places, stay."""
    if not floats.is_floating(like):
        return like
    return np.frombuffer(random.bytes(like.nbytes), like.dtype).reshape(like.shape)


def results(body: functions.Body, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a body over the ring; NotCovered where an op is not defined there."""
    evaluator = Evaluator(body, runner=runner)
    return [np.asarray(y.numpy(), y.dtype.as_numpy_dtype) for y in evaluator.run(inputs)]


def difference(found: Array, expected: Array) -> str:
    """Where two results differ in a bit; "" where they do not."""
    got, want = (_flat_words(one) for one in (found, expected))
    places = np.flatnonzero(got != want)
    if not places.size:
        return ""
    first = int(places[0])
    return (
        f"{places.size} of {want.size} elements differ, first that at {first}:"
        f" {int(got[first]):#x}, its body {int(want[first]):#x}"
    )


def _flat_words(array: Array) -> Array:
    return np.array(array, order="C").reshape(-1).view(f"uint{array.dtype.itemsize * 8}")


def runner(node: Any) -> Callable[[Sequence[Any]], list[Any]]:
    """Runs a node over the ring, as `Evaluator` has it run one."""
    if node.op == "Const":
        return lambda _: [constant(tf.make_ndarray(node.attr["value"].tensor))]
    if node.op == "Cast":
        target = tf.as_dtype(node.attr["DstT"].type)
        return lambda inputs: [_cast(inputs[0], target)]
    traits, own = op_traits.of(node.op), OPS.get(node.op)
    plain = call.eager_runner(node)
    if (traits.moves_data or traits.reads_only_shapes) and own is None:
        return plain

    def run(inputs: Sequence[Any]) -> list[Any]:
        floats = [x.dtype for x in inputs if x.dtype.is_floating]
        if not floats and not traits.draws:
            results = plain(inputs)
            if own is not None or not any(y.dtype.is_floating for y in results):
                return results
        if own is None:
            raise NotCovered(f"op {node.op} is not defined over the ring")
        with np.errstate(over="ignore"):
            made = own(node, *map(_words, inputs))
        made = made if isinstance(made, list) else [made]
        return [_tensor(one, node, floats) for one in made]

    return run


def constant(values: Array) -> Any:
    """The tensor of what stands for constants."""
    dtype = tf.as_dtype(values.dtype)
    if not dtype.is_floating:
        return tf.constant(values)
    known, places = np.unique(values.astype(np.float64), return_inverse=True)
    elements = [ring.constant(float(one), dtype.name) for one in known]
    words = np.array(elements, f"uint{dtype.size * 8}")[places].reshape(values.shape)
    return tf.constant(words.view(dtype.as_numpy_dtype))


def _words(tensor: Any) -> Any:
    array = tensor.numpy()
    array = np.asarray(array, tensor.dtype.as_numpy_dtype)
    return array.view(f"uint{tensor.dtype.size * 8}") if tensor.dtype.is_floating else array


def _tensor(words: Any, node: Any, floats: Sequence[tf.DType]) -> Any:
    """A result as a tensor: unsigned integers are words of a float that the node takes."""
    if words.dtype.kind == "u":
        dtype = next(d for d in floats if d.size == words.dtype.itemsize)
        return tf.constant(np.array(words, order="C").view(dtype.as_numpy_dtype))
    if "output_type" in node.attr:
        words = words.astype(tf.as_dtype(node.attr["output_type"].type).as_numpy_dtype)
    return tf.constant(words)


def _cast(x: Any, target: tf.DType) -> Any:
    """A conversion: the lowest bits stay, and integers are elements of the ring."""
    words = _words(x)
    if target == tf.bool:
        return tf.constant(words != 0)
    if target.is_floating:
        made = words.astype(f"uint{target.size * 8}")
        return tf.constant(made.view(target.as_numpy_dtype))
    return tf.constant(words.astype(target.as_numpy_dtype))
