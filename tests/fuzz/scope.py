"""What a random program is made of: its source of choices, and the names it can read.

Kinds of values: tensors "f" (of the op's dtype T, which the attribute d names), "i" (int32) and "b"
(bool), known values "int", "float", "bool" and "str", lists "ints" and "tensors", tuples of ints
"tuple", lists of lists of ints "nested". Tensors broadcast to [4, 3], mostly.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

# What an op of the fuzzer is declared as; its function has these parameters.
INPUTS = {"xs": "tensors", "x": "f", "y": "f", "n": "i", "p": "b"}
ATTRS = {"k": "int", "r": "float", "flag": "bool", "s": "str", "ks": "ints", "d": "dtype"}


@dataclasses.dataclass(frozen=True)
class Options:
    """Which programs are made.

    tensor_conditions: whether tensors may decide an `if` or a `while`.
    for_kernels: leave out what kernels do not cover.
    size: statements of a body, about.
    """

    tensor_conditions: bool = False
    for_kernels: bool = False
    size: int = 6


class Scope:
    """The names that can be read, by kind; and the random choices."""

    def __init__(self, seed: int, options: Options) -> None:
        self.random = random.Random(seed)
        self.options = options
        self.names: dict[str, str] = INPUTS | ATTRS
        self.helpers: dict[str, list[str]] = {}  # by name: the kinds of the parameters
        self.functions: list[list[str]] = []  # the text of helpers, a list of lines each
        self.results: list[str] = []  # kinds of what the function returns that is being made
        self.in_loop = 0
        self.protected: set[str] = set()  # names that must not be assigned: loops count on them
        self._fresh = 0

    def of_kind(self, kind: str) -> list[str]:
        """The names of a kind."""
        return [name for name, one in self.names.items() if one == kind]

    def fresh(self, prefix: str) -> str:
        """A name that is not used yet."""
        self._fresh += 1
        return f"{prefix}{self._fresh}"

    def chance(self, part: float) -> bool:
        """True in this part of the cases."""
        return self.random.random() < part

    def pick(self, values: Sequence[T]) -> T:
        """One of the values."""
        return self.random.choice(values)

    def weighted(self, choices: Sequence[tuple[int, Callable[[], T]]]) -> T:
        """The result of one of the functions."""
        weights = [weight for weight, _ in choices]
        return self.random.choices([make for _, make in choices], weights)[0]()

    @contextmanager
    def block(self, **names: str) -> Iterator[None]:
        """A block: `names` are known in it, and what it defines is not known after it."""
        outer = dict(self.names)
        self.names.update(names)
        yield
        self.names = outer
