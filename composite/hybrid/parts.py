"""Ragged and sparse values, which consist of several tensors, as places in a structure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

_RAGGED, _SPARSE = "ragged", "sparse"


@dataclass(frozen=True)
class Parts:
    """The place of a ragged or sparse value.

    Attributes:
        spec: its tf.RaggedTensorSpec or tf.SparseTensorSpec.
        indices: those of its tensors, in the order in which `tf.nest.flatten` has them.
    """

    spec: Any
    indices: tuple[int, ...]

    @classmethod
    def at(cls, value: Any, first: int) -> Parts | None:
        """The place of a value or of the spec of one; None for what is neither ragged nor sparse.

        `first` is the index of its first tensor.
        """
        if isinstance(value, tf.RaggedTensor | tf.SparseTensor):
            value = tf.type_spec_from_value(value)
        if not isinstance(value, tf.RaggedTensorSpec | tf.SparseTensorSpec):
            return None
        count = len(tf.nest.flatten(value, expand_composites=True))
        return cls(value, tuple(range(first, first + count)))

    @classmethod
    def of_json(cls, told: Any) -> Parts:
        """What `to_json` told."""
        kind, dims, dtype, *ragged = told["spec"].split()
        shape = None if dims == "?" else [int(d) if d != "?" else None for d in dims.split(",")[1:]]
        if kind == _SPARSE:
            return cls(tf.SparseTensorSpec(shape, tf.as_dtype(dtype)), tuple(told["indices"]))
        rank, splits = ragged
        spec = tf.RaggedTensorSpec(shape, tf.as_dtype(dtype), int(rank), tf.as_dtype(splits))
        return cls(spec, tuple(told["indices"]))

    def to_json(self) -> dict[str, Any]:
        """Its indices, and a text: "ragged ,?,? string 1 int64", "sparse ,?,8 float32"."""
        rank = self.spec.shape.rank
        dims = ("", *("?" if d is None else str(d) for d in self.spec.shape)) if rank else ()
        told = [",".join(dims) or "?", self.spec.dtype.name]
        if isinstance(self.spec, tf.RaggedTensorSpec):
            told = [_RAGGED, *told, str(self.spec.ragged_rank), self.spec.row_splits_dtype.name]
        else:
            told = [_SPARSE, *told]
        return {"spec": " ".join(told), "indices": list(self.indices)}

    def tensors(self, value: Any) -> list[Any] | None:
        """Those of a value; None for one of another kind, dtype or shape."""
        if Parts.at(value, 0) is None or not self.spec.is_compatible_with(value):
            return None
        return list(tf.nest.flatten(value, expand_composites=True))

    def value(self, tensors: Sequence[Any]) -> Any:
        """The value of these, among others."""
        own = [tensors[k] for k in self.indices]
        return tf.nest.pack_sequence_as(self.spec, own, expand_composites=True)

    def __str__(self) -> str:
        """The spec, for people."""
        return str(self.spec)
