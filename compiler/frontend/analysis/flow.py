"""Where statements return, what they assign and what they read, as far as their text shows it.

Not for: which values are needed later (liveness.py), whether a name is bound (scopes.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import gast

_FUNCTIONS = (gast.FunctionDef, gast.Lambda)
_LOOPS = (gast.For, gast.While)
_ENDS = (gast.Return, gast.Raise, gast.Break, gast.Continue)


def returns(statement: Any) -> bool:
    """Say whether a `return` stands anywhere in a statement."""
    return _holds(statement, gast.Return)


def ends(statement: Any) -> bool:
    """Say whether a path may end in a statement: by `return`, `raise`, `break` or `continue`.

    No path ends in a loop: desugar.py has removed `return` from it, and `break` leaves it only.
    """
    return _holds(statement, _ENDS)


def breaks(statements: Sequence[Any]) -> bool:
    """Say whether the body of a loop has a `break` that leaves this loop."""
    return any(_holds(statement, gast.Break) for statement in statements)


def _holds(statement: Any, kind: Any) -> bool:
    if isinstance(statement, gast.If):
        return any(_holds(inner, kind) for inner in (*statement.body, *statement.orelse))
    return isinstance(statement, kind)


def endings(statements: Sequence[Any]) -> int:
    """Count the paths through `statements` that go on to what follows them.

    Counted as they are emitted: an `if` in which no path ends is one path, because it is joined;
    one in which a path ends is a path for each of its branches that goes on.
    """
    for index, statement in enumerate(statements):
        if isinstance(statement, _ENDS):
            return 0
        if isinstance(statement, gast.If) and ends(statement):
            go_on = endings(statement.body) + endings(statement.orelse)
            return endings(statements[index + 1 :]) if go_on else 0
    return 1


def targets(statement: Any) -> Iterator[str]:
    """Yield the names that a statement assigns, in the order of the text; names may repeat."""
    if isinstance(statement, gast.If):
        for inner in (*statement.body, *statement.orelse):
            yield from targets(inner)
    elif isinstance(statement, _LOOPS):
        if isinstance(statement, gast.For):
            yield from names(statement.target)
        for inner in (*statement.body, *statement.orelse):
            yield from targets(inner)
    elif isinstance(statement, gast.Assign):
        for target in statement.targets:
            yield from names(target)
    elif isinstance(statement, (gast.AugAssign, gast.AnnAssign)):
        yield from names(statement.target)
    elif isinstance(statement, gast.FunctionDef):
        yield statement.name


def names(target: Any) -> Iterator[str]:
    """Yield the names that a target of an assignment binds."""
    if isinstance(target, gast.Name):
        if isinstance(target.ctx, gast.Store):
            yield target.id
        return
    for node in gast.walk(target):
        if isinstance(node, gast.Name) and isinstance(node.ctx, gast.Store):
            yield node.id


def assigned(statements: Sequence[Any]) -> tuple[str, ...]:
    """Return the names that statements assign, each once, in the order of the text."""
    return tuple(dict.fromkeys(name for one in statements for name in targets(one)))


def parameters(definition: Any) -> tuple[str, ...]:
    """Return the names of the parameters of a function, without `*args` and `**kwargs`."""
    arguments = definition.args
    return tuple(one.id for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def loads(node: Any) -> list[str]:
    """Return the names that an expression or a statement reads; names may repeat.

    A function reads what it takes from outside of it, and its defaults.
    """
    read: list[str] = []
    _collect_loads(node, read)
    return read


def _collect_loads(node: Any, read: list[str]) -> None:
    if isinstance(node, gast.Name):
        if isinstance(node.ctx, gast.Load):
            read.append(node.id)
    elif isinstance(node, _FUNCTIONS):
        read.extend(free(node))
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            _collect_loads(default, read)
    elif isinstance(node, gast.ListComp):
        own = {name for generator in node.generators for name in names(generator.target)}
        _collect_loads(node.generators[0].iter, read)
        inside: list[str] = []
        for child in children(node):
            _collect_loads(child, inside)
        read.extend(name for name in inside if name not in own)
    else:
        for child in children(node):
            _collect_loads(child, read)


def children(node: Any) -> list[Any]:
    """Return the nodes in the fields of a node: as gast.iter_child_nodes, and much faster."""
    found: list[Any] = []
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, list):
            found.extend(one for one in value if isinstance(one, gast.AST))
        elif isinstance(value, gast.AST):
            found.append(value)
    return found


def free(definition: Any) -> tuple[str, ...]:
    """Return the names that a function reads and does not bind, each once."""
    body = [definition.body] if isinstance(definition, gast.Lambda) else definition.body
    own = {*parameters(definition), *assigned(body)}
    read = dict.fromkeys(name for part in body for name in loads(part))
    return tuple(name for name in read if name not in own)
