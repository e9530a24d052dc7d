"""The values that the blocks of an `if` or a loop use and that are defined outside of them.

Not for: writing them as functions, whose inputs these are (serialize.py).
"""

from __future__ import annotations

from typing import Any

_WITH_BLOCKS = frozenset({"scf.if", "scf.while"})


class Captures:
    """The values that an op's blocks use and do not define, in the order of their use."""

    def __init__(self) -> None:
        self._by_op: dict[Any, list[Any]] = {}

    def of(self, op: Any) -> list[Any]:
        """Return the captures of an op; those of nested ops are computed once."""
        if op not in self._by_op:
            found: dict[Any, None] = {}
            for region in op.regions:
                self._add(region.blocks[0], found)
            self._by_op[op] = list(found)
        return self._by_op[op]

    def _add(self, block: Any, found: dict[Any, None]) -> None:
        known = set(block.arguments)
        for op in block.operations:
            used = list(op.operands)
            if op.name in _WITH_BLOCKS:
                used.extend(self.of(op))
            found.update(dict.fromkeys(value for value in used if value not in known))
            known.update(op.results)
