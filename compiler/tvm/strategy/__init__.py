"""Strategies: how the stages of a plan become loops, a room for each device.

A room's package gives its ``STRATEGIES`` in the order in which they are asked. To add a strategy,
write a module with a :class:`.context.Strategy` in the room and list it there, in front of those
that would also match its stages. The package's ``joined_stages`` says which stages of a plan are
written as one.
"""

from __future__ import annotations

from importlib import import_module

from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.strategy.context import Context, Strategy


def strategies_of(device: str) -> tuple[Strategy, ...]:
    """Return the strategies for a kind of device, such as "cpu"."""
    strategies: tuple[Strategy, ...] = import_module(f".{device}", __package__).STRATEGIES
    return strategies


def joined_stages(context: Context) -> list[Stage]:
    """Return the stages that are written for the plan of a context, in order."""
    room = import_module(f".{context.target.device}", __package__)
    stages: list[Stage] = room.joined_stages(context)
    return stages
