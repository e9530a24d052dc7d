"""What a module says of itself: the structures of its inputs and outputs, as JSON inside of it."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor  # of TensorFlow 2.21: tells its shape fast

from composite.binding import json_text
from composite.hybrid.parts import Parts

FORMAT = 4  # of the description: a module of a later one is refused


@dataclass(frozen=True)
class Description:
    """A module's own words.

    Attributes:
        name: the model's.
        inputs: the arguments of a call, positional ones and those by name, with the index of an
            input, or None for what is no tensor, in the place of each.
        outputs: what a call returns, with the index of an output in the place of each.
        specs: dtype and shape of each input.
        isa: the level of CPUs that its kernels need; "" if it has none.
        kernels: how many calls of kernels it has.
        calls: how many calls of TensorFlow it has.
        ir: its program of Relax, as text.
    """

    name: str
    inputs: Any
    outputs: Any
    specs: tuple[tuple[str, tuple[int | None, ...] | None], ...]
    isa: str
    kernels: int
    calls: int
    ir: str

    def to_json(self) -> bytes:
        """The description as text."""
        told = asdict(self) | {"inputs": _told(self.inputs), "outputs": _told(self.outputs)}
        return json.dumps({"format": FORMAT, **told}, sort_keys=True).encode()

    @classmethod
    def of_json(cls, content: bytes) -> Description:
        """The description that `to_json` wrote. ValueError for one of another format."""
        told = json_text.parsed(content)
        if told.pop("format") != FORMAT:
            raise ValueError("the module was written by another version: compile the model again")
        told["specs"] = tuple((d, s if s is None else tuple(s)) for d, s in told["specs"])
        told |= {"inputs": _read(told["inputs"]), "outputs": _read(told["outputs"])}
        return cls(**told)

    def arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The inputs of a call, in order. TypeError or ValueError if they are not what it takes."""
        found: dict[int, Any] = {}
        positional, named = self.inputs
        if len(args) == len(named) == 1 and not (positional or kwargs):
            args, kwargs = (), dict(zip(named, args, strict=True))  # as TensorFlow's signatures
        # What is no tensor may be left out: the module has the values that it was compiled with.
        args = (*args, *(None for place in positional[len(args) :] if _is_empty(place)))
        kwargs = {key: None for key, place in named.items() if _is_empty(place)} | kwargs
        if not _bound(self.inputs, (args, kwargs), found):
            raise TypeError(f"{self.name} takes {self._wanted()}")
        return [
            found[k] if spec.holds(found[k]) else self._converted(k, found[k])
            for k, spec in enumerate(self._specs)
        ]

    @property
    def takes_list(self) -> bool:
        """Whether the arguments of a call are its inputs, in order."""
        return bool(self.inputs == (tuple(range(len(self.specs))), {}))

    def result(self, outputs: Sequence[Any]) -> Any:
        """What a call returns, of its outputs."""
        return _filled(self.outputs, outputs)

    @functools.cached_property
    def _specs(self) -> list[_Spec]:
        return [_Spec(tf.as_dtype(dtype).as_datatype_enum, dims) for dtype, dims in self.specs]

    def _converted(self, k: int, value: Any) -> Any:
        dtype, shape = self.specs[k]
        tensor = tf.convert_to_tensor(value, tf.as_dtype(dtype))
        if not tf.TensorShape(shape).is_compatible_with(tensor.shape):
            raise ValueError(
                f"input {k} of {self.name} has shape {tensor.shape}, the module takes "
                f"{tf.TensorShape(shape)}: compile it with a tf.TensorSpec that has None for dims "
                "that vary"
            )
        return tensor

    def _wanted(self) -> str:
        specs = [f"{dtype}{tf.TensorShape(shape)}" for dtype, shape in self.specs]
        args, kwargs = tf.nest.map_structure(
            lambda k: specs[k] if isinstance(k, int) else k, self.inputs
        )
        return ", ".join([*map(str, args), *(f"{key}={value}" for key, value in kwargs.items())])


class _Spec(NamedTuple):
    """An input, as it is told at each call.

    Attributes:
        dtype: the number of its dtype.
        dims: its sizes, each None where it may be any; None for any shape.
    """

    dtype: int
    dims: tuple[int | None, ...] | None

    def holds(self, value: Any) -> bool:
        """Whether a value is an eager tensor of this dtype and shape."""
        if type(value) is not EagerTensor or value._datatype_enum() != self.dtype:
            return False
        if self.dims is None:
            return True
        dims = value._shape_tuple()
        return len(dims) == len(self.dims) and all(
            size in (None, dim) for size, dim in zip(self.dims, dims, strict=True)
        )


def indices(structure: Any, count_of: type | tuple[type, ...]) -> Any:
    """A structure with the index of each leaf of these types in its place.

    A ragged or sparse leaf has Parts in its place, any other None.
    """
    count = 0

    def place(leaf: Any) -> int | Parts | None:
        nonlocal count
        parts = Parts.at(leaf, count)
        if parts is None and not isinstance(leaf, count_of):
            return None
        count += 1 if parts is None else len(parts.indices)
        return count - 1 if parts is None else parts

    return _plain(tf.nest.map_structure(place, structure))


def count(places: Any) -> int:
    """How many tensors have a place in a structure."""
    found = [place for place in tf.nest.flatten(places) if place is not None]
    return sum(len(one.indices) if isinstance(one, Parts) else 1 for one in found)


def _is_empty(places: Any) -> bool:
    return all(place is None for place in tf.nest.flatten(places))


def _bound(wanted: Any, given: Any, found: dict[int, Any]) -> bool:
    """Whether arguments have a structure; `found` gets what is in the place of each index."""
    if isinstance(wanted, dict):
        is_like = isinstance(given, Mapping) and given.keys() == wanted.keys()
        return is_like and all(_bound(one, given[key], found) for key, one in wanted.items())
    if isinstance(wanted, tuple | list):
        is_like = isinstance(given, tuple | list) and len(given) == len(wanted)
        return is_like and all(map(_bound, wanted, given, [found] * len(wanted)))
    if isinstance(wanted, Parts):
        tensors = wanted.tensors(given)
        found.update(zip(wanted.indices, tensors or (), strict=False))
        return tensors is not None
    if wanted is not None:
        found[wanted] = given
    return True


def _filled(structure: Any, outputs: Sequence[Any]) -> Any:
    """A structure with outputs in the places of their indices."""
    if isinstance(structure, int):
        return outputs[structure]
    if isinstance(structure, Parts):
        return structure.value(outputs)
    if isinstance(structure, dict):
        return {key: _filled(value, outputs) for key, value in structure.items()}
    if isinstance(structure, tuple | list):
        return type(structure)(_filled(value, outputs) for value in structure)
    return structure


def _plain(structure: Any) -> Any:
    """A structure of tuples, lists and dicts alone, as tf.nest flattens it."""
    if isinstance(structure, dict):
        return {key: _plain(structure[key]) for key in sorted(structure)}
    if isinstance(structure, tuple):
        return tuple(map(_plain, structure))
    return list(map(_plain, structure)) if isinstance(structure, list) else structure


def _told(structure: Any) -> Any:
    """JSON that tells tuples from lists."""
    if isinstance(structure, dict):
        return {"dict": {key: _told(value) for key, value in structure.items()}}
    if isinstance(structure, tuple | list):
        return {type(structure).__name__: [*map(_told, structure)]}
    return {"parts": structure.to_json()} if isinstance(structure, Parts) else structure


def _read(told: Any) -> Any:
    if not isinstance(told, dict):
        return told
    ((kind, content),) = told.items()
    if kind == "parts":
        return Parts.of_json(content)
    if kind == "dict":
        return {key: _read(value) for key, value in content.items()}
    return tuple(map(_read, content)) if kind == "tuple" else [*map(_read, content)]
