"""A function whose tensors are replaced by a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.loop import Loop
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.ir.walk import Rule, rebuilt, rewrite


def rewritten(function: Function, rule: Rule) -> Function:
    """Return the function after `rewrite`; what replaces a tensor has its origin."""
    made = rewrite(function.outputs, rule)
    origins = dict(function.origins)
    for tensor, instead in made.items():
        if tensor in origins:
            origins.setdefault(instead, origins[tensor])
    return replace(function, outputs=tuple(made[t] for t in function.outputs), origins=origins)


def in_trips(rule: Rule) -> Rule:
    """Return a rule that replaces tensors inside of loops, too."""

    def rule_of_all(tensor: Tensor, made: Mapping[Tensor, Tensor]) -> Tensor | None:
        if not isinstance(tensor.node, Loop):
            return rule(tensor, made)
        inside = rewrite(tensor.node.following, rule_of_all)
        following = tuple(inside[t] for t in tensor.node.following)
        outside = rebuilt(tensor, made)
        if following == tensor.node.following:
            return outside
        assert isinstance(outside.node, Loop)  # as its tensor was
        return replace(outside, node=replace(outside.node, following=following))

    return rule_of_all
