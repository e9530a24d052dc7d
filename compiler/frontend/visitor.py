"""The base of every pass over a body. The language is a closed world.

A pass handles the nodes that it has methods for. Any other node is an error at its place that says
what to write instead, so no node is dropped silently.

Not for: deciding what a supported node means.
"""

from __future__ import annotations

import functools
from typing import Any

from composite.compiler.errors import Mistake
from composite.compiler.errors.expressions import NO_CONTAINER, NO_WALRUS
from composite.compiler.errors.statements import (
    NO_CONTEXT,
    NO_COROUTINE,
    NO_DEFINITION,
    NOT_TRANSLATED,
    STARRED,
)
from composite.compiler.source import Source

# By gast's node class: the mistake, the name of the syntax, and what to write instead.
ADVICE: dict[str, tuple[Mistake, str, str]] = {
    "AsyncFor": (NO_COROUTINE, "an `async for` loop", "write `for`"),
    "Try": (NO_CONTEXT, "`try`", "check the condition with `if` before the call"),
    "TryStar": (NO_CONTEXT, "`try`", "check the condition with `if` before the call"),
    "With": (NO_CONTEXT, "`with`", "a body has no context to enter: call the ops directly"),
    "AsyncWith": (
        NO_CONTEXT,
        "`async with`",
        "a body has no context to enter: call the ops directly",
    ),
    "Delete": (NO_DEFINITION, "`del`", "a value that is not used is not computed: leave it out"),
    "Global": (NO_DEFINITION, "`global`", "return the value as an output of the op"),
    "Nonlocal": (NO_DEFINITION, "`nonlocal`", "return the value as an output of the op"),
    "Import": (NO_DEFINITION, "`import`", "import at the top of the module"),
    "ImportFrom": (NO_DEFINITION, "`import`", "import at the top of the module"),
    "AsyncFunctionDef": (NO_COROUTINE, "a nested function", "write its body where it is called"),
    "ClassDef": (NO_DEFINITION, "a class", "define it outside of the op"),
    "Match": (NOT_TRANSLATED, "`match`", "write `if` and `elif`"),
    "TypeAlias": (NO_DEFINITION, "a type alias", "define it outside of the op"),
    "NamedExpr": (NO_WALRUS, "`:=`", "assign on a line of its own"),
    "SetComp": (NO_CONTAINER, "a comprehension of a set", "write one of a list"),
    "DictComp": (NO_CONTAINER, "a comprehension", "use an `if` chain"),
    "GeneratorExp": (NO_CONTAINER, "a generator", "write a list: `[... for ...]`"),
    "Dict": (NO_CONTAINER, "a dictionary", "use an `if` chain on the key"),
    "Set": (NO_CONTAINER, "a set", "write a tuple"),
    "Yield": (NO_COROUTINE, "`yield`", "return the outputs as a tuple"),
    "YieldFrom": (NO_COROUTINE, "`yield`", "return the outputs as a tuple"),
    "Await": (NO_COROUTINE, "`await`", "call the op directly"),
    "Starred": (STARRED, "`*`", "write the elements out"),
    "TemplateStr": (NOT_TRANSLATED, "a template string", "write a string"),
}


@functools.cache
def _method(class_name: str) -> str:
    return f"visit_{class_name}"


class Visitor:
    """Calls visit_<class> for a node, and fails for a class without one."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def visit(self, node: Any) -> Any:
        """Handle one node."""
        return getattr(self, _method(type(node).__name__), self.generic_visit)(node)

    def generic_visit(self, node: Any) -> Any:
        """Refuse the node."""
        name = type(node).__name__
        other = (NOT_TRANSLATED, f"this syntax ({name})", "write it with simpler statements")
        mistake, what, instead = ADVICE.get(name, other)
        message = f"{what} is not supported in the body of a composite: {instead}"
        self.source.fail(node, mistake, message)
