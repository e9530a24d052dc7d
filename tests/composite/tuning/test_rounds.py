"""Rounds of two kernels: what noise does to them, and when they end."""

from __future__ import annotations

import random
import time

import pytest

from composite.tuning import rounds


def test_a_spell_of_noise_hits_both() -> None:
    source = random.Random(0)
    found = []
    for _ in range(40):
        spell = source.choice([1.0, 1.0, 3.0])
        found.append(rounds.Round(10e-6 * spell, 8e-6 * spell * source.uniform(0.99, 1.01)))
    summary = rounds.summary(found, "code")
    assert summary.ratio == pytest.approx(0.8, rel=0.02)
    assert summary.high < 0.82
    assert summary.us == pytest.approx(summary.ratio * summary.default_us)
    assert (summary.rounds, summary.against) == (40, "code")


def test_they_take_turns_at_being_first() -> None:
    order = []

    def runner(name: str, seconds: float):
        def run() -> float:
            order.append(name)
            return seconds

        return run

    found = rounds.run(runner("a", 2.0), runner("b", 1.0), 0.0)
    assert len(found) == rounds.FEWEST
    assert order[:4] == ["a", "b", "b", "a"]
    assert set(found) == {rounds.Round(2.0, 1.0)}


def test_a_hopeless_candidate_is_left() -> None:
    start = time.perf_counter()
    found = rounds.run(lambda: 1.0, lambda: 1.5, seconds=30.0)
    assert len(found) == rounds.FEWEST
    assert time.perf_counter() - start < 10
