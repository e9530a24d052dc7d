"""Turns of several workers, and what is made of their times."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from benchmarks.sides import team
from benchmarks.sides.process import Lost, Refused
from benchmarks.sides.team import Comparison, Member, Team
from benchmarks.subjects import peers
from benchmarks.timing import Timings
from benchmarks.works.model_work import ModelWork
from benchmarks.works.work import Work

DENSE = Work("dense", (2, 3, 3), depth=4)


class Scripted:
    """In the place of a process: answers from a table, and keeps what it was asked."""

    log: ClassVar[list[tuple[str, str]]] = []
    seconds: ClassVar[dict[str, float]] = {
        "ours": 0.002,
        "bare_kernel": 0.0001,
        "good": 0.004,
        "bad": 0.001,
    }

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.module = command[-1]
        self.turns = 0

    def ask(self, question: dict, *, timeout: float = 0) -> object:
        Scripted.log.append((self.module, question["ask"]))
        if question["ask"] == "versions":
            if self.module == "absent":
                raise Lost("No module named 'absent'")
            return {self.module: "1"}
        if question["ask"] == "prepare":
            assert question["work"]["depth"] == (1 if self.module == "bare_kernel" else 4)
            if self.module.startswith("wrong"):
                raise Refused("the result is wrong")
            column = "bare kernel" if self.module == "bare_kernel" else self.module
            return {column: {"setting": "", "note": "", "difference": 0.0}}
        self.turns += 1
        if self.module == "bad" and self.turns == 3:
            raise Lost("it crashed")
        return self.seconds[self.module]

    def close(self) -> None:
        Scripted.log.append((self.module, "close"))


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setattr(team, "Process", Scripted)
    Scripted.log = []
    names = ("ours", "good", "bad", "absent", "wrong")
    members = tuple(Member(name) for name in names)
    return Team((*members, Member("bare_kernel", single=True), Member("away", Path("/nowhere"))))


def test_sides_take_turns_and_the_missing_are_named(scripted: Team) -> None:
    with scripted as made:
        comparison = made.compare(DENSE, seconds=0)
        assert made.missing["absent"] == "No module named 'absent'"
        assert "its environment is not there" in made.missing["away"]
    assert set(comparison.timings.seconds) == {"ours", "good", "bare kernel"}
    assert comparison.refused["wrong"] == "the result is wrong"
    assert comparison.refused["bad"] == "it crashed"
    assert comparison.timings.microseconds("ours").median == pytest.approx(500)  # a node of four
    assert comparison.timings.microseconds("bare kernel").median == pytest.approx(100)
    turns = [module for module, ask in Scripted.log if ask == "time"]
    assert turns[:8] == ["ours", "good", "bad", "bare_kernel", "good", "bad", "bare_kernel", "ours"]
    assert {("ours", "close"), ("good", "close")} <= set(Scripted.log)


def test_a_kernel_is_prepared_once_for_both_stacks_of_a_layer(scripted: Team) -> None:
    with scripted as made:
        made.compare(DENSE, seconds=0)
        made.compare(replace(DENSE, distinct=True), seconds=0)
    asked = [module for module, ask in Scripted.log if ask == "prepare"]
    assert (asked.count("bare_kernel"), asked.count("ours")) == (1, 2)


def test_a_kernel_is_another_when_it_knows_its_weights(scripted: Team) -> None:
    with scripted as made:
        made.compare(DENSE, seconds=0)
        made.compare(replace(DENSE, constant=True), seconds=0)
    assert [module for module, ask in Scripted.log if ask == "prepare"].count("bare_kernel") == 2


def test_a_side_can_be_started_again(scripted: Team) -> None:
    with scripted as made:
        Scripted.log = []
        made.renew("ours")
        made.renew("absent")  # stays away
        assert Scripted.log == [("ours", "close"), ("ours", "versions")]


def test_the_first_member_is_asked_first_when_it_was_started_again(scripted: Team) -> None:
    with scripted as made:
        made.renew("ours")
        Scripted.log = []
        made.compare(DENSE, seconds=0)
    assert next(module for module, ask in Scripted.log if ask == "prepare") == "ours"


def test_where_all_refuse_there_are_no_times(scripted: Team) -> None:
    with scripted, Team((Member("wrong"), Member("wrong too"))) as made:
        comparison = made.compare(DENSE, seconds=0)
    assert (comparison.timings.seconds, comparison.columns) == ({}, {})
    assert set(comparison.refused) == {"wrong", "wrong too"}


def test_a_model_is_one_call(scripted: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[dict, float]] = []

    def ask(self: Scripted, question: dict, *, timeout: float = 0) -> object:
        if question["ask"] == "versions":
            return {}
        asked.append((question, timeout))
        told = {"setting": "", "note": "", "difference": 0.0}
        return {self.module: told} if question["ask"] == "prepare" else 0.004

    monkeypatch.setattr(Scripted, "ask", ask)
    with Team((Member("good"), Member("bare_kernel", single=True)), patience=7) as made:
        comparison = made.compare(ModelWork("BERT", 8, "/nowhere"), seconds=0)
    work = {"model": "BERT", "batch": 8, "folder": "/nowhere"}
    assert asked[0] == ({"ask": "prepare", "work": work}, 7)
    assert comparison.timings.microseconds("good").median == pytest.approx(4000)


def test_ours_is_started_again_for_another_batch(scripted: Team) -> None:
    def restarts(*shapes: tuple[int, ...]) -> int:
        Scripted.log = []
        for shape in shapes:
            made.compare(Work("dense", shape, depth=4), seconds=0)
        return Scripted.log.count(("ours", "close"))

    with scripted as made:
        assert restarts((2, 3, 3), (2, 3, 3), (2, 4, 4), (2, 5, 5)) == 0
        assert restarts((7, 3, 3)) == 1
        assert restarts((2, 8, 8), (2, 4, 4)) == 0
        assert restarts((2, 5, 5)) == 1  # the fourth layer


def test_a_row_shows_the_fastest_of_the_others_over_ours() -> None:
    seconds = {
        "bare kernel": np.full(3, 1e-6),
        "ours": np.full(3, 2e-6),
        "ours, tf.function": np.full(3, 1e-7),
        "slow": np.full(3, 9e-6),
        "fast": np.full(3, 3e-6),
    }
    told = {"setting": "", "note": "kernel: gemm", "difference": 0.0}
    columns = dict.fromkeys(seconds, told)
    comparison = Comparison(DENSE, Timings(seconds), columns, {"gone": "it crashed"})
    row = peers.row(comparison)
    assert row.what == "dense 2x3x3, a node of 4, weights as inputs: fast / ours"
    assert row.value == pytest.approx(1.5)
    assert row.data["overhead_us"]["median"] == pytest.approx(1)
    assert row.data["columns"]["slow"]["ratio"]["median"] == pytest.approx(4.5)
    assert "without gone: it crashed" in row.detail


def test_without_the_others_there_is_nothing_to_compare() -> None:
    columns = {"ours": {"setting": "", "note": "", "difference": 0.0}}
    timings = Timings({"ours": np.full(3, 1e-6)})
    row = peers.row(Comparison(DENSE, timings, columns, {"good": "it crashed"}))
    assert (row.value, row.detail, row.data) == (0, "without good: it crashed", {})


def test_the_members_run_in_their_own_environments() -> None:
    members = (*team.MEMBERS, *team.MODEL_MEMBERS)
    here = {m.module for m in members if m.python == Path(sys.executable)}
    assert here == {"ours", "bare_kernel", "tensor_flow", "model_keras"}
