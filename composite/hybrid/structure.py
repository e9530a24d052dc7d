"""What a module says of itself: the structures of its inputs and outputs, as JSON inside of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import tensorflow as tf

from composite.binding import json_text

FORMAT = 2  # of the description: a module of a later one is refused


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
    """

    name: str
    inputs: Any
    outputs: Any
    specs: tuple[tuple[str, tuple[int | None, ...] | None], ...]
    isa: str
    kernels: int
    calls: int

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
        return [self._converted(k, found[k]) for k in range(len(self.specs))]

    def result(self, outputs: Sequence[Any]) -> Any:
        """What a call returns, of its outputs."""
        return tf.nest.map_structure(lambda k: k if k is None else outputs[k], self.outputs)

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
        args, kwargs = tf.nest.map_structure(lambda k: k if k is None else specs[k], self.inputs)
        return ", ".join([*map(str, args), *(f"{key}={value}" for key, value in kwargs.items())])


def indices(structure: Any, count_of: type | tuple[type, ...]) -> Any:
    """A structure with the index of each leaf of these types in its place, None in any other's."""
    count = -1

    def place(leaf: Any) -> int | None:
        nonlocal count
        if not isinstance(leaf, count_of):
            return None
        count += 1
        return count

    return _plain(tf.nest.map_structure(place, structure))


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
    if wanted is not None:
        found[wanted] = given
    return True


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
    return structure


def _read(told: Any) -> Any:
    if not isinstance(told, dict):
        return told
    ((kind, content),) = told.items()
    if kind == "dict":
        return {key: _read(value) for key, value in content.items()}
    return tuple(map(_read, content)) if kind == "tuple" else [*map(_read, content)]
