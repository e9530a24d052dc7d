"""The command line: results that were kept are shown and written again without measuring."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import __main__ as command
from benchmarks import compare
from benchmarks.report.ratios import draw
from benchmarks.rows import Row
from tests.benchmarks.report.results import results
from tests.conftest import ROOT


def test_kept_results_become_a_page(tmp_path: Path) -> None:
    kept, page, picture = (tmp_path / name for name in ("rows.json", "page.md", "ratios.svg"))
    kept.write_text(json.dumps(results()))
    runner = CliRunner()
    done = runner.invoke(
        command.main, ["--read", str(kept), "--markdown", str(page), "--ratios", str(picture)]
    )
    assert done.exit_code == 0, done.output
    assert "        0.812 x  eager call 4x8x16: kernel / MatMul\n" in done.output
    assert "measured in 417 s: roofline 8 s, peers 340 s" in done.output
    assert max(map(len, done.output.splitlines())) <= 80
    assert page.read_text().startswith("# Performance with AVX2\n")
    assert picture.read_text() == draw(page.read_text())


def test_subjects_are_run_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(subject: str, *, quick: bool, kinds: Sequence[str]) -> tuple[list[Row], int]:
        asked.append((subject, quick, kinds))
        return [Row(f"of {subject}", 1.0, "x")], int(subject == "idle")

    monkeypatch.setattr(command, "run", run)
    kept = tmp_path / "rows.json"
    given = ["dense", "idle", "--quick", "--kind", "lstm", "--json", str(kept)]
    done = CliRunner().invoke(command.main, given)
    assert asked == [("dense", True, ("LSTM",)), ("idle", True, ("LSTM",))]
    assert done.exit_code == 1
    assert "did not finish: idle" in done.output
    written = json.loads(kept.read_text())
    assert (written["quick"], written["kinds"]) == (True, ["LSTM"])
    assert [row["what"] for row in written["subjects"]["dense"]] == ["of dense"]


def test_kinds_are_those_of_any_subject(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sequence[str]] = []

    def run(subject: str, *, quick: bool, kinds: Sequence[str]) -> tuple[list[Row], int]:
        asked.append(kinds)
        return [], 0

    monkeypatch.setattr(command, "run", run)
    done = CliRunner().invoke(command.main, ["saved", "--kind", "keras lstm"])
    assert done.exit_code == 0, done.output
    assert asked == [("Keras LSTM",)]
    asked.clear()
    done = CliRunner().invoke(command.main, ["quantized", "--kind", "dense 32x256x256"])
    assert done.exit_code == 0, done.output
    assert asked == [("dense 32x256x256",)]
    done = CliRunner().invoke(command.main, ["saved", "--kind", "no such kind"])
    assert done.exit_code == 2
    assert "'no such kind' is not one of" in done.output


def test_kinds_and_quickness_reach_the_process_of_a_subject(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "benchmarks" / "subjects"
    folder.mkdir(parents=True)
    (folder / "asked.py").write_text(
        "import os; keys = ('COMPOSITE_BENCH_QUICK', 'COMPOSITE_BENCH_KINDS')\n"
        "what = ' '.join(os.environ[k] for k in keys)\n"
        """print('row {"what": "' + what + '", "value": 1, "unit": ""}')"""
    )
    monkeypatch.chdir(tmp_path)  # `-m` looks here first
    rows, status = command.run("asked", quick=True, kinds=("LSTM", "layer norm"))
    assert (status, [row.what for row in rows]) == (0, ["1 LSTM,layer norm"])


def test_every_subject_is_a_module() -> None:
    found = {path.stem for path in Path(command.__file__).with_name("subjects").glob("*.py")}
    assert found == {*command.SUBJECTS, *command.ON_REQUEST}


def test_a_picture_wants_the_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "PEERS_PYTHON", tmp_path / "python")
    kept = tmp_path / "rows.json"
    kept.write_text(json.dumps(results()))
    done = CliRunner().invoke(command.main, ["--read", str(kept), "--plot", str(tmp_path / "p")])
    assert done.exit_code == 1
    assert "which `make bench` makes" in done.output


def test_a_whole_run_has_the_page_of_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw_nothing(_: object, path: Path) -> None:
        path.write_text("<svg/>")

    monkeypatch.setattr(command, "draw", draw_nothing)
    kept, folder = tmp_path / "rows.json", tmp_path / "performance"
    args = ["--read", str(kept), "--page", str(folder)]
    kept.write_text(json.dumps(results()))
    done = CliRunner().invoke(command.main, args)
    assert done.exit_code == 1
    assert "--page wants a run of all works" in done.output
    assert not folder.exists()
    kept.write_text(json.dumps({**results(), "quick": False}))
    done = CliRunner().invoke(command.main, args)
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in folder.iterdir()) == ["avx2.json", "avx2.md", "avx2.svg"]
    assert "(avx2.svg)" in (folder / "avx2.md").read_text()


def test_two_runs_are_compared(tmp_path: Path) -> None:
    files = [tmp_path / "old.json", tmp_path / "new.json"]
    for file in files:
        file.write_text(json.dumps(results()))
    command_line = [sys.executable, "-m", "benchmarks", "compare", *map(str, files)]
    done = subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "0 of 16 figures changed beyond noise" in done.stdout
    told = CliRunner().invoke(compare.main, ["--help"]).output
    assert "the quartiles of its samples in the two runs do not overlap" in " ".join(told.split())
