"""Which gradient an op has: the derived one, or its author's; for which shapes it is made.

TensorFlow asks here, with a node of a graph or with what an eager tape recorded. The derived one is
made from the program that the runtime has, so a model loaded in a fresh process trains as well.

How a derived gradient is made and runs is in `backward`.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from composite.autodiff import backward
from composite.binding import native
from composite.binding.call_request import CallRequest
from composite.binding.records import BACKEND, EAGER, NUMERICS, PROGRAM, AttrValue
from composite.ops import function_op, recorded
from composite.ops.registry import OPS

Shape = backward.Shape


class _Family:
    """Calls of one version with the same attributes, dtypes and ranks, whatever their sizes.

    Holds the input shapes that they have in common; a dim that varied is unknown. So ten thousand
    batch sizes need two backwards: one for the first size, one for all others. Where a function is
    traced, which takes longer than a backward, a few shapes get each its own: with known sizes it
    reads fewer shapes as it runs, and XLA insists on knowing those.
    """

    OWN = 8  # shapes, of a family

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own: set[tuple[Shape, ...]] = set()
        self._seen: tuple[Shape, ...] | None = None

    def widen(self, shapes: tuple[Shape, ...], *, traced: bool) -> tuple[Shape, ...]:
        with self._lock:
            if traced and (shapes in self._own or len(self._own) < self.OWN):
                self._own.add(shapes)
                return shapes
            if self._seen is None:
                self._seen = shapes
            else:
                self._seen = tuple(map(_common, self._seen, shapes))
            return self._seen


def _common(a: Shape, b: Shape) -> Shape:
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


@functools.lru_cache(maxsize=4 * backward.LIMIT)
def _family(*_key: Hashable) -> _Family:
    return _Family()


def register(op_name: str) -> None:
    """Gives TensorFlow a gradient function for a name; the registry's hook for new ones.

    A name that has one by tf.RegisterGradient keeps that.
    """

    def gradient(op: Any, *output_gradients: Any) -> Any:
        return _gradient(op_name, op, output_gradients)

    try:
        tf.RegisterGradient(op_name)(gradient)
    except KeyError:  # registered already
        OPS.note_foreign_gradient(op_name)


def _digest(op_name: str, op: Any) -> str:
    """The version that an op without a stamp stands for; "" when none is known.

    A tape may be older than the version that the name stands for now. When an eager tensor was made
    is known, and so is which version made it.
    """
    if isinstance(op, tf.Operation) or not op.outputs:
        return OPS.digest_at(op_name)
    return OPS.digest_at(op_name, recorded.made_at(op.outputs[0]))


def _gradient(op_name: str, op: Any, output_gradients: Sequence[Any]) -> Any:
    attrs = recorded.attrs_of(op)
    stamp = attrs.pop(PROGRAM, None)
    digest = stamp.s.decode() if stamp is not None else _digest(op_name, op)
    own = OPS.own_gradient(digest)
    if own is not None and own.function is not None:
        return own.function(op, *output_gradients)
    if own is not None:
        raise LookupError(own.refusal)
    used = [
        gradient is not None and _has_gradient(output.dtype)
        for gradient, output in zip(output_gradients, op.outputs, strict=True)
    ]
    if not any(used):
        return [None] * len(op.inputs)
    if op_name == function_op.NAME:
        function_op.ensure_defined(op)
    keeps, skipped = _may_keep(op, attrs), set(getattr(op, "skip_input_indices", None) or ())
    needed = tuple(i not in skipped for i in range(len(op.inputs)))
    way = backward.Way(tuple(used), needed, keeps, lasts=True)
    found = _backward(op_name, _request(op_name, attrs, digest), list(op.inputs), way)
    wanted = [g for g, use in zip(output_gradients, used, strict=True) if use]
    gradients = found(op, [*map(tf.convert_to_tensor, wanted)], _options_of(attrs))
    for gradient, one in zip(gradients, op.inputs, strict=True):
        # A tf.while_loop that carries it insists on its shape. A variable's is not its handle's.
        if gradient is not None and one.dtype != tf.resource:
            gradient.set_shape(one.shape)
    return gradients


def _request(op_name: str, attrs: Mapping[str, AttrValue], digest: str) -> bytes:
    """The call that is differentiated, for `backward`, serialized.

    It names the versions that stay nodes where a body calls them: TensorFlow asks here for theirs.
    """
    given = tuple((name, value.SerializeToString()) for name, value in sorted(attrs.items()))
    return _serialized(op_name, given, digest, tuple(OPS.underived()))


@functools.lru_cache(maxsize=4 * backward.LIMIT)
def _serialized(
    op_name: str, given: tuple[tuple[str, bytes], ...], digest: str, whole: tuple[str, ...]
) -> bytes:
    attrs = {name: AttrValue.FromString(value) for name, value in given}
    return CallRequest.of_node(op_name, attrs, program=digest, whole=whole).serialize()


def _has_gradient(dtype: tf.DType) -> bool:
    return bool(dtype.is_floating or dtype.is_complex)


def _options_of(attrs: Mapping[str, AttrValue]) -> dict[str, AttrValue]:
    """How a node is to run, for what is derived from it; "tvm" is about itself alone."""
    kept = {name: attrs[name] for name in (BACKEND, NUMERICS, EAGER) if name in attrs}
    return {name: value for name, value in kept.items() if value.s != b"tvm"}


def plan(request: CallRequest, outputs: Sequence[tf.DType]) -> backward.Backward:
    """The backward that a traced call has, for `op.request` and the dtypes of its outputs.

    LookupError, FailedPreconditionError: it has none, for the reason that they say.
    """
    shapes = request.in_shapes
    key = _request(request.op, request.attrs, request.program)
    used = tuple(map(_has_gradient, outputs))
    if not any(used):
        raise LookupError("no output is floating")
    way = backward.Way(used, (True,) * len(shapes), keeps=True, lasts=True)
    return backward.differentiate(key, tuple(map(_shape, shapes)), way)


def _may_keep(op: Any, attrs: Mapping[str, AttrValue]) -> bool:
    """Whether the forward can keep values: its node is in the function that is being traced.

    An eager call is over, and a node that must have a kernel has none for further outputs.
    """
    node = recorded.node_of(op)
    if node is None or attrs.get(BACKEND, _AUTO).s == b"tvm":
        return False
    return bool(node.graph.building_function and node.graph is tf.compat.v1.get_default_graph())


_AUTO = AttrValue(s=b"auto")


def _backward(
    op_name: str, key: bytes, inputs: Sequence[Any], way: backward.Way
) -> backward.Backward:
    shapes = tuple(_shape(x.shape) for x in inputs)
    ranks = tuple(x.shape.rank for x in inputs)
    try:
        common = _family(key, way, ranks).widen(shapes, traced=way.keeps)
        return backward.differentiate(key, common, way)
    except tf.errors.FailedPreconditionError as error:
        if not native.is_not_yet(error):
            raise
    # The body looks at a dim that varies: these shapes need a backward of their own.
    try:
        return backward.differentiate(key, shapes, way._replace(keeps=False, lasts=False))
    except tf.errors.FailedPreconditionError as error:
        if native.is_not_yet(error):
            raise _not_yet(op_name, error) from None
        raise


def _shape(shape: tf.TensorShape) -> Shape:
    return None if shape.rank is None else tuple(shape.as_list())


def _not_yet(op_name: str, error: tf.errors.FailedPreconditionError) -> Exception:
    return native.not_yet(
        f"the gradient of {op_name} cannot be made while tracing with these shapes: "
        f"{error.message}; give the input a static shape there (tf.ensure_shape, or an "
        "input_signature)",
    )


register(function_op.NAME)
