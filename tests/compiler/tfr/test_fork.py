"""An `if` under construction, finished and given up."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

from composite.compiler.source import CompositeSyntaxError
from composite.compiler.tfr import Builder, Fork, dialect


def uses(value: Any) -> list[str]:
    return [use.owner.name for use in value.uses]


def test_what_is_given_up_uses_nothing() -> None:
    with dialect.lock, dialect.context():
        builder = Builder()
        function = builder.function("f", ["attr"], ["attr"], ["x"])
        block = function.regions[0].blocks[0]
        (x,) = block.arguments
        with builder.into(block):
            outer = Fork(builder, x)
            with builder.into(outer.then):
                inner = Fork(builder, builder.unary("not", x))
                with builder.into(inner.otherwise):
                    builder.binary("add", x, x)
            assert sorted(uses(x)) == ["tfr.binary", "tfr.binary", "tfr.truth", "tfr.unary"]
            builder.clear()
            assert uses(x) == ["tfr.truth"]


def test_a_joined_fork_leaves_one_if() -> None:
    with dialect.lock, dialect.context():
        builder = Builder()
        function = builder.function("f", ["attr"], ["attr"], ["x"])
        block = function.regions[0].blocks[0]
        (x,) = block.arguments
        with builder.into(block):
            fork = Fork(builder, x)
            condition = fork._condition
            builder.give_back(fork.join([(x, x)]))
        assert uses(condition) == ["scf.if"]
        builder.clear()
        assert builder.module.operation.verify()


@pytest.mark.parametrize("depth", [1, 5])
def test_errors_in_branches_leave_nothing_behind(
    depth: int, compile_body: Any, define: Callable[..., Any], op_def: Callable[..., Any]
) -> None:
    lines = ["def body(x, k):", "    y = x"]
    for level in range(1, depth + 1):
        lines += [f"{'    ' * level}if k > {level}:", f"{'    ' * level}    y = y * k + x"]
    lines += [f"{'    ' * (depth + 1)}y = y.T", "    return y"]
    body = define("\n".join(lines) + "\n")
    k = 'name: "k" type: "int" default_value { i: 0 }'
    errors = []
    for _ in range(20):
        with pytest.raises(CompositeSyntaxError) as caught:
            compile_body(body, op_def("Test", attrs=[k]))
        errors.append(caught)
    # The frames that an error keeps alive hold values; whichever goes first, none is used after.
    errors.reverse()
    del errors, caught
    gc.collect()
