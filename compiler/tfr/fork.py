"""An `if` that is being built.

Not for: deciding what its branches yield (the frontend).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from composite.compiler.tfr import dialect
from composite.compiler.tfr.builder import Builder


class Fork:
    """Two blocks, `then` and `otherwise`, that `join` makes an scf.if on Python's truth of a value.

    The result types of an op are fixed when it is created, and are known only when both blocks are
    complete. So the blocks are built in an op that is in no block, and moved.
    """

    def __init__(self, builder: Builder, condition: Any) -> None:
        self._builder = builder
        self._condition = builder.truth(condition)
        self._nursery = builder.op("scf.if", [self._condition], regions=2, attached=False)
        self.then, self.otherwise = (region.blocks.append() for region in self._nursery.regions)
        builder.begin(self)

    def abandon(self) -> None:
        """Destroy the blocks, which an error has left unfinished."""
        self._nursery.erase()

    def join(self, pairs: Sequence[tuple[Any, Any]], names: Sequence[str] = ()) -> list[Any]:
        """Create the op; each pair has the values of a result, one of each block.

        `names` are what the source calls the results, for messages.
        """
        types = [_common_type(first, second) for first, second in pairs]
        for side, block in enumerate((self.then, self.otherwise)):
            with self._builder.into(block):
                values = [
                    self._builder.cast(pair[side], type_)
                    for pair, type_ in zip(pairs, types, strict=True)
                ]
                self._builder.op("scf.yield", values)
        results = [dialect.type_of(type_) for type_ in types]
        op = self._builder.op("scf.if", [self._condition], results, regions=2)
        self._builder.name_results(op, names)
        self.then.append_to(op.regions[0])
        self.otherwise.append_to(op.regions[1])
        self._builder.finish(self)
        # Erased now: left to Python, it might outlive the condition that it uses.
        self._nursery.erase()
        for result, (first, second) in zip(op.results, pairs, strict=True):
            elements = {self._builder.element_type(first), self._builder.element_type(second)}
            if len(elements) == 1 and dialect.name_of(result) == "sequence":
                self._builder.note_elements(result, elements.pop())
        return list(op.results)


def _common_type(first: Any, second: Any) -> str:
    """Return the type of an `if` between two values; a stand-in after an error fits any."""
    names = (dialect.name_of(first), dialect.name_of(second))
    if names[0] == names[1]:
        return names[0]
    for value, other in ((first, names[1]), (second, names[0])):
        if dialect.producer(value, "tfr.raise") is not None:
            return other
    return "any"
