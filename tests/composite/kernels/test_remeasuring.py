"""Kernels that lost on a busy machine are measured again."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.kernels import produce, remeasuring, verdicts
from composite.kernels.cache import Cache
from composite.measuring.decisions import Decision, Times, decide

_KEY = "0" * 32
_REQUEST = KernelRequest(op="X", program="abc", in_shapes=((32, 8),))
_RECORD = KernelRecord(
    op="X", name="k", program="abc", in_shapes=_REQUEST.in_shapes, out_shapes=("s0",)
)


def _decision(ratio: float, *, disturbed: bool) -> Decision:
    return decide({32: Times(10 * ratio, 10.0, ratio, ratio, ratio, disturbed)}, 32)


class _World:
    """A clock, what is measured next, and what was installed."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.now = 0.0
        self.next: list[Decision] = []
        self.installed: list[Decision] = []

    def settle(self) -> produce.Outcome:
        return produce.settled(_REQUEST, self.cache, _KEY, _RECORD, lambda: False)

    def run_at(self, now: float, *, stops: bool = False) -> None:
        self.now = now
        remeasuring.run_due(lambda: stops)

    def measured(self, *_: Any) -> Iterator[Decision]:
        yield self.next.pop(0)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> _World:
    world = _World(Cache(tmp_path / "c"))
    monkeypatch.setattr(remeasuring, "_wanted", collections.deque())
    monkeypatch.setattr("time.monotonic", lambda: world.now)
    monkeypatch.setattr(verdicts, "measured", world.measured)
    monkeypatch.setattr(verdicts, "install", lambda _, one: world.installed.append(one))
    monkeypatch.setattr(produce, "put", lambda _: None)
    return world


_BUSY, _CALM = _decision(1.5, disturbed=True), _decision(0.5, disturbed=False)


def test_a_kernel_that_lost_on_a_busy_machine_is_measured_again(world: _World) -> None:
    world.next = [_BUSY, _CALM]
    assert world.settle().status == "expansion"
    world.run_at(9.0)
    assert world.installed == [_BUSY]
    world.run_at(11.0)
    assert world.installed == [_BUSY, _CALM]
    assert verdicts.stored(world.cache, _KEY, _REQUEST) == _CALM
    world.run_at(1000.0)
    assert not world.next and len(world.installed) == 2


def test_a_process_measures_a_few_times(world: _World) -> None:
    world.next = [_BUSY] * 5
    world.settle()
    for now in (11.0, 12.0, 72.0, 400.0, 1000.0, 10_000.0):
        world.run_at(now)
    assert len(world.next) == 1


def test_a_later_process_measures_what_is_doubtful_in_the_cache(world: _World) -> None:
    verdicts.store(world.cache, _KEY, _RECORD, _REQUEST, _BUSY)
    world.next = [_CALM]
    assert world.settle().status == "expansion"
    world.run_at(11.0)
    assert world.installed == [_BUSY, _CALM]


def test_what_another_process_measured_is_not_measured_again(world: _World) -> None:
    world.next = [_BUSY]
    world.settle()
    verdicts.store(world.cache, _KEY, _RECORD, _REQUEST, _CALM)
    world.run_at(11.0)
    assert world.installed == [_BUSY, _CALM]


def test_a_process_that_ends_stores_nothing(world: _World) -> None:
    world.next = [_BUSY, _CALM]
    world.settle()
    world.run_at(11.0, stops=True)
    assert verdicts.stored(world.cache, _KEY, _REQUEST) == _BUSY


def test_a_measurement_that_fails_leaves_the_verdict(world: _World) -> None:
    """The thread that measures serves other requests."""
    world.next = [_BUSY]
    world.settle()
    world.run_at(11.0)  # there is nothing to measure
    world.run_at(1000.0)
    assert world.installed == [_BUSY]
    assert verdicts.stored(world.cache, _KEY, _REQUEST) == _BUSY


@pytest.mark.parametrize("decision", [_CALM, _decision(1.5, disturbed=False)])
def test_what_is_certain_is_final(world: _World, decision: Decision) -> None:
    world.next = [decision]
    world.settle()
    assert not remeasuring._wanted
