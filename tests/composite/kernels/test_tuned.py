"""The file of what tuning found: what it holds, how it is merged, what it refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from composite.kernels.tuned import Damaged, Database, Measured, Record, Trial, Winner


def measured(us: float = 10.0, rounds: int = 7) -> Measured:
    return Measured(us, 20.0, us / 20.0, us / 21.0, us / 19.0, rounds, "default")


def record() -> Record:
    trials = {
        "aa": Trial({"0.gemm.tile": "columns 6x2", "0.gemm.panels": 4}, {"here": measured()}),
        "bb": Trial({"0.gemm.tile": "rows 6x2"}, error="Mismatch: off by 2"),
    }
    return Record(
        "Dense", "2x3; act=RELU", "x86-64-v3-2", trials, {"here": Winner("aa", measured(), 2)}
    )


def test_a_text_gives_what_it_was_made_of() -> None:
    database = Database({"k": record()})
    again = Database.parse(database.text())
    assert again.records == database.records
    assert again.text() == database.text()


def test_it_is_replaced_in_one_step_and_kept_from_others(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    Database({"k": record()}).add_to(file)
    Database({"l": record()}).add_to(file)
    assert sorted(Database.read(file).records) == ["k", "l"]
    assert not file.stat().st_mode & 0o022
    assert {p.name for p in tmp_path.iterdir()} == {"t.json", ".t.json.lock"}


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            for i in range(5):
                Database({f"{number}-{i}": record()}).add_to(file)
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert len(Database.read(file).records) == 20


DATABASES = st.dictionaries(
    st.sampled_from("kl"),
    st.builds(
        Record,
        st.just("Dense"),
        st.just("2x3"),
        st.just("v3"),
        st.dictionaries(
            st.sampled_from("abc"),
            st.builds(
                Trial,
                st.just({"tile": 2}),
                st.dictionaries(
                    st.sampled_from(["here", "there"]),
                    st.builds(measured, st.sampled_from([8.0, 9.0]), st.integers(5, 6)),
                    max_size=2,
                ),
                st.sampled_from(["", "wrong"]),
            ),
        ),
        st.dictionaries(
            st.just("here"),
            st.builds(Winner, st.sampled_from("ab"), st.builds(measured), st.integers(1, 3)),
        ),
    ),
)


@given(DATABASES, DATABASES)
@settings(max_examples=60, deadline=None)
def test_the_order_of_merging_makes_no_difference(one: dict, other: dict) -> None:
    texts = []
    for first, second in ((one, other), (other, one)):
        merged = Database()
        for content in (first, second, first):
            merged.merge(Database.parse(Database(content).text()))
        texts.append(merged.text())
    assert texts[0] == texts[1]


def test_more_rounds_know_better_and_a_time_is_no_failure() -> None:
    mine, theirs = record(), record()
    theirs.trials["aa"].machines["here"] = measured(15.0, rounds=40)
    theirs.trials["bb"] = Trial({"0.gemm.tile": "rows 6x2"}, {"there": measured(3.0)})
    mine.merge(theirs)
    assert mine.trials["aa"].machines["here"].us == 15.0
    assert mine.trials["bb"].error == ""
    assert mine.trials["bb"].machines == {"there": measured(3.0)}


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"format": 1}', '{"format": 1, "kernels": {"k": {"op": "X"}}}', "\x00", "null"],
)
def test_what_is_no_database_is_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "t.json"
    file.write_text(text)
    with pytest.raises(Damaged, match=r"t\.json is no tuning database .*tune again"):
        Database.read(file)
    with pytest.raises(Damaged):
        Database({"k": record()}).add_to(file)
    assert file.read_text() == text


def test_another_format_is_told(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text('{"format": 9, "kernels": {}}')
    with pytest.raises(Damaged, match=r"t\.json: its format is 9, and this version reads 1"):
        Database.read(file)


@pytest.mark.parametrize("us", [0, -1, float("nan"), "x"])
def test_a_time_that_is_none_is_damage(us: object) -> None:
    content = json.loads(Database({"k": record()}).text())
    content["kernels"]["k"]["trials"]["aa"]["machines"]["here"]["us"] = us
    with pytest.raises(ValueError, match="above zero|could not convert"):
        Database.parse(json.dumps(content))
