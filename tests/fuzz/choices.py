"""What the makers of expressions share: the scope, and the dispatch on kinds.

Not for: the expressions themselves (tensors.py, known.py).
"""

from __future__ import annotations

from tests.fuzz.scope import Scope

COMPARE = ["<", "<=", ">", ">=", "==", "!="]


class Choices:
    """Makes expressions, as text, from what a scope has.

    Every maker takes the depth that is left; at 0 an expression is a name or a number.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.rich = 0 if scope.options.for_kernels else 1  # weight of what no kernel covers

    def of(self, kind: str, depth: int) -> str:
        """An expression of a kind."""
        return str(getattr(self, MAKERS[kind])(depth))

    def name(self, kind: str) -> str:
        """A name of a kind."""
        names = self.scope.of_kind(kind)
        # What was assigned last is what has not been tried yet.
        return self.scope.pick(names[-4:] if self.scope.chance(0.7) else names)

    def number(self, depth: int) -> str:
        """A known number."""
        return self.of(self.scope.pick(["literal", "int", "float"]), depth)


MAKERS = {
    "f": "f", "i": "i", "b": "b", "int": "whole", "float": "real", "bool": "truth", "str": "text",
    "ints": "ints", "tensors": "tensors", "dtype": "dtype", "literal": "literal",
    "tuple": "tuple", "nested": "nested",
}  # fmt: skip
