"""Which backward serves a call: one for all sizes of a dim that varies, or one of its own.

Not for how a backward is made and runs, see `backward`.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Hashable, Mapping

import tensorflow as tf

from composite.autodiff import backward
from composite.binding import native
from composite.binding.call_request import CallRequest
from composite.binding.records import AttrValue
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


def request(op_name: str, attrs: Mapping[str, AttrValue], digest: str) -> bytes:
    """The call that is differentiated, for `backward`, serialized.

    It names the versions that stay nodes where a body calls them: TensorFlow asks here for theirs.
    """
    given = tuple((name, value.SerializeToString()) for name, value in sorted(attrs.items()))
    return _serialized(op_name, given, digest, OPS.underived())


@functools.lru_cache(maxsize=4 * backward.LIMIT)
def _serialized(
    op_name: str, given: tuple[tuple[str, bytes], ...], digest: str, whole: tuple[str, ...]
) -> bytes:
    attrs = {name: AttrValue.FromString(value) for name, value in given}
    return CallRequest.of_node(op_name, attrs, program=digest, whole=whole).serialize()


def has_gradient(dtype: tf.DType) -> bool:
    """Whether tensors of this dtype have gradients."""
    return bool(dtype.is_floating or dtype.is_complex)


def serving(
    op_name: str, key: bytes, shapes: tuple[Shape, ...], way: backward.Way, *, traced: bool
) -> backward.Backward:
    """The backward for inputs of these shapes; `key` is the `request`.

    `traced`: for a node of the function that is being traced.

    LookupError: an op of the body has no gradient; FailedPreconditionError: a shape is not known
    that the body needs.
    """
    ranks = tuple(None if shape is None else len(shape) for shape in shapes)
    try:
        common = _family(key, way, ranks).widen(shapes, traced=traced)
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


def _not_yet(op_name: str, error: tf.errors.FailedPreconditionError) -> Exception:
    return native.not_yet(
        f"the gradient of {op_name} cannot be made while tracing with these shapes: "
        f"{error.message}; give the input a static shape there (tf.ensure_shape, or an "
        "input_signature)",
    )
