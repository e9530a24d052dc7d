"""Strategies: how the stages of a plan become loops, a room for each device.

A room's package gives its ``STRATEGIES`` in the order in which they are asked. To add a strategy,
write a module with a :class:`.context.Strategy` in the room and list it there, in front of those
that would also match its stages.
"""

from __future__ import annotations

from importlib import import_module

from composite.compiler.tvm.strategy.context import Strategy


def strategies_of(device: str) -> tuple[Strategy, ...]:
    """Return the strategies for a kind of device, such as "cpu"."""
    strategies: tuple[Strategy, ...] = import_module(f".{device}", __package__).STRATEGIES
    return strategies
