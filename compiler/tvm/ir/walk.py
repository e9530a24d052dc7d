"""Walks over a graph of tensors, and graphs made anew with some tensors replaced.

Every walk is a loop, not a recursion: graphs are deeper than Python's stack. Each visits a tensor
once, in an order that depends on the graph alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from composite.compiler.tvm.ir.tensor import Node, Reshape, Tensor

_T = TypeVar("_T", bound=Hashable)


def operands_of(tensor: Tensor) -> tuple[Tensor, ...]:
    """Return the tensors that a tensor is made of."""
    return tensor.node.operands


def unreshaped(tensor: Tensor) -> Tensor:
    """Return what a tensor is only another shape of."""
    while isinstance(tensor.node, Reshape):
        tensor = tensor.node.operand
    return tensor


def topological(
    outputs: Iterable[Tensor], below: Callable[[Tensor], Iterable[Tensor]] = operands_of
) -> list[Tensor]:
    """Return everything that the outputs need, operands first, in a stable order.

    ``below`` gives what to enter from a tensor; nothing ends the walk there.
    """
    order: list[Tensor] = []
    seen: set[Tensor] = set()
    stack: list[tuple[Tensor, Iterator[Tensor]]] = []

    def visit(tensor: Tensor) -> None:
        if tensor not in seen:
            seen.add(tensor)
            stack.append((tensor, iter(below(tensor))))

    for output in outputs:
        visit(output)
        while stack:
            tensor, operands = stack[-1]
            operand = next(operands, None)
            if operand is None:
                order.append(tensor)
                stack.pop()
            else:
                visit(operand)
    return order


def reachable(roots: Iterable[_T], below: Callable[[_T], Iterable[_T]]) -> list[_T]:
    """Return the roots and what is below them, each before what is below it, last roots first.

    ``below`` is called once for each, in that order; nothing ends the walk there.
    """
    order: dict[_T, None] = {}
    stack = list(roots)
    while stack:
        one = stack.pop()
        if one not in order:
            order[one] = None
            stack.extend(below(one))
    return list(order)


def users(tensors: Iterable[Tensor]) -> dict[Tensor, list[Tensor]]:
    """Map each operand of some tensors to those that read it, once for each time it is read."""
    found: dict[Tensor, list[Tensor]] = {}
    for tensor in tensors:
        for operand in tensor.node.operands:
            found.setdefault(operand, []).append(tensor)
    return found


Rule = Callable[[Tensor, Mapping[Tensor, Tensor]], Tensor | None]
"""Returns what replaces a tensor, given what replaces its operands; None for the tensor itself."""


def rewrite(outputs: Iterable[Tensor], rule: Rule) -> dict[Tensor, Tensor]:
    """Map all that the outputs need to what replaces it, operands first.

    What the rule leaves is made anew over the replaced operands, or is the same tensor if they are.
    """
    made: dict[Tensor, Tensor] = {}
    for tensor in topological(outputs):
        instead = rule(tensor, made)
        made[tensor] = rebuilt(tensor, made) if instead is None else instead
    return made


def rebuilt(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor:
    """Return the tensor over the operands that were made; itself if they are the same."""
    node = tensor.node
    if all(made[t] is t for t in node.operands):
        return tensor
    if isinstance(node, Reshape):
        source = unreshaped(made[node.operand])
        return source if source.shape == tensor.shape else replace(tensor, node=Reshape(source))
    return replace(tensor, node=over(node, made))


def over(node: Node, made: Mapping[Tensor, Tensor]) -> Node:
    """Return the node over the operands that were made."""
    return type(node)(**{one.name: _remade(getattr(node, one.name), made) for one in fields(node)})


def _remade(field: Any, made: Mapping[Tensor, Tensor]) -> Any:
    """Return the field of a node over the tensors that were made."""
    if isinstance(field, Tensor):
        return made.get(field, field)  # what a loop has inside is its own
    if isinstance(field, tuple):
        return tuple(_remade(part, made) for part in field)
    return field
