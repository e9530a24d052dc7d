"""Whether a name is read once for each time that it is assigned, as far as the text shows it.

Not for: which paths assign a name (scopes.py), what it holds (bindings.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gast

from composite.compiler.frontend.analysis import flow

_REPEATED = (gast.For, gast.While, gast.ListComp, gast.FunctionDef, gast.Lambda)


def once(tree: Any, name: str) -> bool:
    """Say whether a function reads a name in one place, which runs once after each assignment.

    That is so if the name is a parameter, or assigned in one place, and no loop or inner function
    holds only one of the two places.
    """
    found = list(_places(tree.body, name, ()))
    reads = [loops for is_read, loops in found if is_read]
    writes = [loops for is_read, loops in found if not is_read]
    return len(reads) <= 1 and len(writes) <= 1 and all(one in (writes or [()]) for one in reads)


def _places(node: Any, name: str, loops: tuple[Any, ...]) -> Iterator[tuple[bool, tuple[Any, ...]]]:
    """Yield the places of a name: whether it is read there, and which nodes repeat the place."""
    if isinstance(node, list):
        for one in node:
            yield from _places(one, name, loops)
        return
    if isinstance(node, gast.Name):
        if node.id == name:
            yield isinstance(node.ctx, gast.Load), loops
        return
    once_only = _evaluated_once(node)
    for child in once_only:
        yield from _places(child, name, loops)
    inside = (*loops, node) if isinstance(node, _REPEATED) else loops
    for child in _children(node):
        if child not in once_only:
            yield from _places(child, name, inside)


def _evaluated_once(node: Any) -> list[Any]:
    """Return the parts of a loop that are evaluated once, before it."""
    if isinstance(node, gast.For):
        return [node.iter]
    return [node.generators[0].iter] if isinstance(node, gast.ListComp) else []


def _children(node: Any) -> list[Any]:
    children = flow.children(node)
    if isinstance(node, gast.ListComp):
        for generator in node.generators:
            children.remove(generator)
            children += flow.children(generator)
    return children
