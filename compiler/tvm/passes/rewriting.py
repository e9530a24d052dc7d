"""A function whose tensors are replaced by a rule."""

from __future__ import annotations

from dataclasses import replace

from composite.compiler.tvm.ir.graph import Function
from composite.compiler.tvm.ir.walk import Rule, rewrite


def rewritten(function: Function, rule: Rule) -> Function:
    """Return the function after `rewrite`; what replaces a tensor has its origin."""
    made = rewrite(function.outputs, rule)
    origins = dict(function.origins)
    for tensor, instead in made.items():
        if tensor in origins:
            origins.setdefault(instead, origins[tensor])
    return replace(function, outputs=tuple(made[t] for t in function.outputs), origins=origins)
