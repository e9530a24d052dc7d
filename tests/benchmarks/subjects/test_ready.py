"""Rows of `ready`: processes of their own, bounds, and what could not be measured."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.rows import Row
from benchmarks.sides import model_ready
from benchmarks.subjects import ready
from benchmarks.works import readiness
from benchmarks.works.readiness import Ready


def test_a_case_has_two_processes_on_one_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[str], str]] = []

    def measured(command: Sequence[str], cache: str) -> Ready:
        asked.append((list(command[3:]), cache))
        return Ready(40.0 if len(asked) == 1 else 1.0, "3 kernels", 1600.0, 60.0)

    monkeypatch.setattr(ready, "measured", measured)
    monkeypatch.setattr(ready, "PEERS_PYTHON", Path(sys.executable))
    first, peak, used, second, *others = ready.of_case("accelerate: DenseNet121")
    assert (first.value, first.holds, first.detail) == (40.0, False, "3 kernels")
    assert (peak.value, peak.unit, peak.holds) == (1600.0, "MB", False)
    assert (used.value, used.unit) == (60.0, "s")
    assert (second.value, second.holds) == (1.0, True)
    assert asked[0] == asked[1] != asked[2]
    assert [row.what.partition(", ")[2] for row in others] == ["XLA", *model_ready.LIBRARIES]
    assert [words[0] for words, _ in asked] == [
        "ours",
        "ours",
        "XLA",
        "files",
        *model_ready.LIBRARIES,
    ]


def test_what_is_not_ready_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = "import sys; print('a word'); sys.exit('there is no keras-hub')"
    with pytest.raises(ready.NotReady, match="^there is no keras-hub$"):
        ready.measured([sys.executable, "-c", program], str(tmp_path))
    with pytest.raises(ready.NotReady, match="exit code 3"):
        ready.measured([sys.executable, "-c", "raise SystemExit(3)"], str(tmp_path))
    monkeypatch.setattr(ready, "PATIENCE", 0.1)
    with pytest.raises(ready.NotReady, match="not ready in 0 s"):
        ready.measured([sys.executable, "-c", "import time; time.sleep(9)"], str(tmp_path))

    def refused(command: Sequence[str], cache: str) -> Ready:
        raise ready.NotReady("no")

    monkeypatch.setattr(ready, "measured", refused)
    (row,) = ready.of_case("import")
    assert (row.value, row.unit, row.detail) == (0, "", "no")


def test_cases_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "of_case", lambda case: iter([Row(case, 1, "s")]))

    def chosen() -> list[str]:
        return [row.what for row in ready.rows()]

    assert chosen() == list(ready.CASES)
    monkeypatch.setattr(ready, "QUICK", True)
    assert "accelerate: ResNet50" not in chosen()
    assert "import" in chosen()
    monkeypatch.setattr(ready, "KINDS", ("accelerate: ResNet50",))
    assert chosen() == ["accelerate: ResNet50"]
    assert ready.BOUNDS.keys() | ready.MEGABYTES.keys() <= set(ready.CASES)
    assert not readiness.has_peers("import")


@pytest.mark.slow
def test_a_small_case_is_measured(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.works.readiness", "ours", "kernel of a small op"]
    first, second = (ready.measured(command, str(tmp_path)) for _ in range(2))
    assert first.detail == "1 kernels, 1 compiled"
    assert first.processor > second.processor > 0  # the compiler's time is in it
    assert second.detail == "1 kernels, 0 compiled"
    assert first.seconds > second.seconds > 0
    assert first.megabytes > 100
