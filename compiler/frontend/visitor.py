"""The base of every pass over a body: a closed world.

A pass handles the nodes it names; any other is an error at its place, with what to write instead.
Nothing falls through, so nothing can be dropped.

Not for: deciding what a supported node means.
"""

from __future__ import annotations

from typing import Any

from composite.compiler.source import Source

# What stands in the source, and what to write instead. Keys are gast's node classes.
ADVICE: dict[str, tuple[str, str]] = {
    "AsyncFor": ("an `async for` loop", "write `for`"),
    "Try": ("`try`", "check the condition with `if` before the call"),
    "TryStar": ("`try`", "check the condition with `if` before the call"),
    "With": ("`with`", "a body has no context to enter: call the ops directly"),
    "AsyncWith": ("`async with`", "a body has no context to enter: call the ops directly"),
    "Delete": ("`del`", "a value that is not used is not computed: leave it out"),
    "Global": ("`global`", "return the value as an output of the op"),
    "Nonlocal": ("`nonlocal`", "return the value as an output of the op"),
    "Import": ("`import`", "import at the top of the module"),
    "ImportFrom": ("`import`", "import at the top of the module"),
    "AsyncFunctionDef": ("a nested function", "write its body where it is called"),
    "ClassDef": ("a class", "define it outside of the op"),
    "Match": ("`match`", "write `if` and `elif`"),
    "TypeAlias": ("a type alias", "define it outside of the op"),
    "NamedExpr": ("`:=`", "assign on a line of its own"),
    "SetComp": ("a comprehension of a set", "write one of a list"),
    "DictComp": ("a comprehension", "use an `if` chain"),
    "GeneratorExp": ("a generator", "write a list: `[... for ...]`"),
    "Dict": ("a dictionary", "use an `if` chain on the key"),
    "Set": ("a set", "write a tuple"),
    "Yield": ("`yield`", "return the outputs as a tuple"),
    "YieldFrom": ("`yield`", "return the outputs as a tuple"),
    "Await": ("`await`", "call the op directly"),
    "Starred": ("`*`", "write the elements out"),
    "TemplateStr": ("a template string", "write a string"),
}


def unsupported(node: Any) -> str:
    """Return the message for a node that no pass handles."""
    name = type(node).__name__
    what, instead = ADVICE.get(name, (f"this syntax ({name})", "write it with simpler statements"))
    return f"{what} is not supported in the body of a composite: {instead}"


class Visitor:
    """Calls visit_<class> for a node, and fails for a class without one."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def visit(self, node: Any) -> Any:
        """Handle one node."""
        handle = getattr(self, f"visit_{type(node).__name__}", self.generic_visit)
        return handle(node)

    def generic_visit(self, node: Any) -> Any:
        """Refuse the node."""
        self.source.fail(node, unsupported(node))
