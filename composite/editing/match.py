"""What `composite.replace` looks for."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from composite.ops import call


@dataclass(frozen=True)
class Match:
    """Which parts of a graph are meant: all that is given here has to hold.

    Attributes:
        op: the type of a node, "Relu".
        name: its name, as a glob, ``encoder/*/Relu``, or a compiled regular expression, which has
            to match the whole name. In a function, nodes are named as there.
        where: `where(operation) -> bool` looks at a node as a tf.Operation: its inputs with their
            shapes, its attributes, its device.
        pattern: a Python function of tensors, in place of a single node: the ops that it runs, on
            whatever tensors are its inputs. Its constants are literal; operands of AddV2, Mul and
            others that commute may be exchanged; Identity is looked through. `op`, `name` and
            `where` then say more of the node that gives its first result.
        inputs: tf.TensorSpecs of the inputs of `pattern`: their dtypes, and the sizes that they
            must be known to have. Without, the inputs are of one dtype, any, and of any shape.
    """

    op: str | None = None
    name: str | re.Pattern[str] | None = None
    where: Callable[[tf.Operation], bool] | None = None
    pattern: Callable[..., Any] | None = None
    inputs: Sequence[tf.TensorSpec] | None = None

    def __post_init__(self) -> None:
        """Checks that something is asked for, and that it can be there."""
        if (self.op, self.name, self.where, self.pattern) == (None,) * 4:
            raise ValueError("a Match needs an op, a name, where=, or a pattern")
        if self.op is not None and call.op_def(self.op) is None:
            raise ValueError(f"{self.op} is no op that TensorFlow has in this process")
        if self.inputs is not None and self.pattern is None:
            raise ValueError("inputs= of a Match are those of a pattern=, which is missing")

    def refusal(self, node: Any, operation: Callable[[], tf.Operation]) -> str | None:
        """Why a node is none, beside its op, which has to be asked for first; None if it is one."""
        if isinstance(self.name, re.Pattern):
            if not self.name.fullmatch(node.name):
                return f"its name is not {self.name.pattern!r}"
        elif self.name is not None and not fnmatch.fnmatchcase(node.name, self.name):
            return f"its name is not {self.name!r}"
        if self.where is not None and not self.where(operation()):
            return "where() is false of it"
        return None

    def __str__(self) -> str:
        pattern = None if self.pattern is None else getattr(self.pattern, "__name__", "pattern")
        name = self.name.pattern if isinstance(self.name, re.Pattern) else self.name
        where = None if self.where is None else "where()"
        return " ".join(one for one in (pattern, self.op, name, where) if one)


def match_of(given: Any) -> Match:
    """A Match of what users write: one, an op's type, a regular expression, or a pattern."""
    if isinstance(given, Match):
        return given
    if isinstance(given, str):
        return Match(op=given)
    if isinstance(given, re.Pattern):
        return Match(name=given)
    if callable(given):
        return Match(pattern=given)
    raise TypeError(
        f"what to replace is an op's type, a compiled regular expression of names, a function "
        f"(the pattern) or a composite.Match, not {given!r}"
    )
