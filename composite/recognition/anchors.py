"""What each expansion of an op must have in it, read from its program's branches.

A branch is taken by attributes, dtypes and sizes, so there are several such sets: of one of them,
all is there. Not for: how often something may be there (vocabulary.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from composite.recognition.reading import OF_SIZES

Kinds = frozenset[str]
_MOST = 16  # sets; more become what they share
_OF_SIZES = ("tfr.shape", "tfr.dtype", "tfr.length", "tfr.rank")
_STATIC = ("tfr.dtype", "tfr.rank")  # known whatever the dims are, or not known
_LOOPS = ("tfr.while", "tfr.for")


def anchors(program: Any, kinds_of: Callable[[Any], tuple[str, ...]]) -> frozenset[Kinds]:
    """Sets of kinds, of which one is in whatever the program is expanded to.

    Args:
        program: the op's.
        kinds_of: the kinds of a node.
    """
    functions = {one.signature.name: one for one in program.function}

    def sets(function: Any, args: set[str]) -> frozenset[Kinds]:
        found: frozenset[Kinds] = frozenset([frozenset()])
        for node, reached in _computing(function, args):
            if node.op == "tfr.raise":
                return frozenset()
            if node.op != "tfr.if":
                own = frozenset(kinds_of(node)) if reached else frozenset()
                found = frozenset(one | own for one in found)
                continue
            either: frozenset[Kinds] = frozenset()
            for branch in _branches(node, functions):
                either |= sets(branch, _given(branch, node, reached))
            found = frozenset(one | other for one in found for other in either)
            if len(found) > _MOST:
                found = frozenset([frozenset.intersection(*found)])
        return found

    first = program.function[0]
    return sets(first, {arg.name for arg in first.signature.input_arg})


def _computing(function: Any, args: set[str]) -> Iterator[tuple[Any, set[str]]]:
    """Each node, and the operands of it that are computed from `args`, not from sizes alone."""
    reached = set(args)
    for node in function.node_def:
        is_size = node.op in _OF_SIZES or _called(node) in OF_SIZES
        operands = set() if is_size else {x.split(":")[0] for x in node.input} & reached
        if operands:
            reached.add(node.name)
        yield node, operands


def _branches(node: Any, functions: Mapping[str, Any]) -> list[Any]:
    return [functions[node.attr[name].s.decode()] for name in ("then", "else")]


def _given(branch: Any, node: Any, marked: set[str]) -> set[str]:
    """The arguments of a branch that marked operands are given to."""
    pairs = zip(branch.signature.input_arg, list(node.input)[1:], strict=True)
    return {arg.name for arg, operand in pairs if operand.split(":")[0] in marked}


def has_conditions_on_dims(program: Any) -> bool:
    """Whether which branch is taken may depend on the size of a dim."""
    functions = {one.signature.name: one for one in program.function}

    def has(function: Any, args: set[str]) -> bool:
        marked = set(args)
        for node in function.node_def:
            operands = [x.split(":")[0] for x in node.input]
            is_marked = not marked.isdisjoint(operands)
            if node.op in _LOOPS and is_marked:
                return True
            if node.op == "tfr.if":
                if operands[0] in marked:
                    return True
                if any(has(one, _given(one, node, marked)) for one in _branches(node, functions)):
                    return True
            if (is_marked and node.op not in _STATIC) or _is_dim(node):
                marked.add(node.name)
        return False

    return has(program.function[0], set())


def _is_dim(node: Any) -> bool:
    return node.op in ("tfr.shape", "tfr.length") or _called(node) in ("Shape", "ShapeN", "Size")


def _called(node: Any) -> str:
    """The op that a node calls, "" for one that calls none."""
    return node.attr["op"].s.decode() if node.op == "tfr.call" else ""
