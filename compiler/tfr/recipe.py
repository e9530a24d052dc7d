"""A recipe: a description of ops that were built once, to build them again on other operands.

`Recipe.of` describes the ops of a recording, with their branches and loops, except those that
nothing uses.

Not for: finding out where the same ops are needed again (compiler.frontend.specialization).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from composite.compiler.tfr import dialect

if TYPE_CHECKING:
    from composite.compiler.tfr.builder import Builder
    from composite.compiler.tfr.cursor import Place, Recording

_PURE = frozenset(f"tfr.{name}" for name in dialect.PURE_OPS)


@dataclasses.dataclass(frozen=True)
class _Step:
    """An op. Values are numbered: first the given ones, then the results of the steps in order.

    `elements` are the types that are noted for elements of its results, by their index; `at_call`
    says that it has the location of the call, as the call's arguments have.
    """

    name: str
    operands: tuple[int, ...]
    results: list[Any]
    attributes: dict[str, Any]
    blocks: tuple[_Block, ...]
    elements: tuple[tuple[int, str], ...]
    at_call: bool


@dataclasses.dataclass(frozen=True)
class _Block:
    arguments: tuple[Any, ...]
    steps: tuple[_Step, ...]


@dataclasses.dataclass(frozen=True)
class Recipe:
    """Ops to be built; `outputs` are the numbers of the values that they are built for."""

    steps: tuple[_Step, ...]
    outputs: tuple[int, ...]

    @classmethod
    def of(
        cls,
        builder: Builder,
        recording: Recording,
        place: Place,
        given: Sequence[Any],
        outputs: Sequence[Any],
    ) -> Recipe | None:
        """Return the recipe of a recording; None if the ops cannot be built elsewhere.

        Args:
            builder: the one that has built it; its place is again that of the call.
            recording: what it has built.
            place: where all ops are but those that are at the builder's place.
            given: the values that come from outside, none of them twice.
            outputs: the values that are wanted.
        """
        writer = _Writer(builder, place, given)
        try:
            steps = writer.steps(_alive(recording.ops, set(outputs)))
            return cls(steps, writer.count(outputs)) if recording.whole else None
        except _BoundError:
            return None

    def build(self, builder: Builder, place: Place, given: Sequence[Any]) -> list[Any]:
        """Build the ops at the builder's insertion point; returns the outputs."""
        values = list(given)
        _build(builder, (builder.locate(place), builder.locate(builder.place)), self.steps, values)
        return [values[number] for number in self.outputs]


class _BoundError(Exception):
    """An op depends on its surroundings: it uses a value, or has a location, that is not given."""


def _alive(ops: Sequence[Any], used: set[Any]) -> list[tuple[Any, list[Any]]]:
    """Return the ops that have an effect or a use, each with those of its blocks."""
    kept = []
    for op in reversed(ops):
        if _is_pure(op) and used.isdisjoint(op.results):
            continue
        used.update(op.operands)
        blocks = [block for region in op.regions for block in region.blocks]
        kept.append((op, [(block, _alive(list(block.operations), used)) for block in blocks]))
    return kept[::-1]


def _is_pure(op: Any) -> bool:
    if op.name == "tfr.call":
        return not op.attributes["stateful"].value
    if op.name == "tfr.binary":
        return op.attributes["operator"].value not in dialect.IN_PLACE
    return op.name in _PURE


class _Writer:
    """Describes ops as steps."""

    def __init__(self, builder: Builder, place: Place, given: Sequence[Any]) -> None:
        self._builder = builder
        self._location = builder.locate(place)
        self._call = builder.locate(builder.place)
        self._numbers: dict[Any, int] = {}
        self._name(given)

    def _name(self, values: Sequence[Any]) -> None:
        for value in values:
            self._numbers[value] = len(self._numbers)

    def count(self, values: Sequence[Any]) -> tuple[int, ...]:
        """Return the numbers of values."""
        if not self._numbers.keys() >= set(values):
            raise _BoundError
        return tuple(self._numbers[value] for value in values)

    def steps(self, alive: Sequence[tuple[Any, list[Any]]]) -> tuple[_Step, ...]:
        """Return the steps that build ops."""
        return tuple(self._step(op, blocks) for op, blocks in alive)

    def _step(self, op: Any, blocks: Sequence[tuple[Any, Any]]) -> _Step:
        at_call = op.location != self._location
        if at_call and op.location != self._call:
            raise _BoundError
        operands, results = self.count(op.operands), list(op.results)
        self._name(results)
        return _Step(
            name=op.name,
            operands=operands,
            results=[result.type for result in results],
            attributes=dict(op.attributes.items()),
            blocks=tuple(self._block(*one) for one in blocks),
            elements=tuple(self._elements(results)),
            at_call=at_call,
        )

    def _elements(self, results: Sequence[Any]) -> Iterator[tuple[int, str]]:
        for index, result in enumerate(results):
            type_ = self._builder.noted_elements(result)
            if type_ != "any":
                yield index, type_

    def _block(self, block: Any, alive: Sequence[tuple[Any, list[Any]]]) -> _Block:
        arguments = list(block.arguments)
        self._name(arguments)
        return _Block(tuple(argument.type for argument in arguments), self.steps(alive))


def _build(
    builder: Builder, locations: tuple[Any, Any], steps: Sequence[_Step], values: list[Any]
) -> None:
    for step in steps:
        op = builder.append(
            step.name,
            [values[number] for number in step.operands],
            step.results,
            step.attributes,
            len(step.blocks),
            locations[step.at_call],
        )
        results = list(op.results)
        values.extend(results)
        for index, type_ in step.elements:
            builder.note_elements(results[index], type_)
        if not step.blocks:
            continue
        for region, block in zip(op.regions, step.blocks, strict=True):
            places = [op.location] * len(block.arguments)
            made = region.blocks.append(*block.arguments, arg_locs=places)
            values.extend(made.arguments)
            with builder.into(made):
                _build(builder, locations, block.steps, values)
