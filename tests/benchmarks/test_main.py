"""The command line: results that were kept are shown and written again without measuring."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import __main__ as command
from benchmarks.rows import Row
from tests.benchmarks.report.results import results


def test_kept_results_become_a_page(tmp_path: Path) -> None:
    kept, page = tmp_path / "rows.json", tmp_path / "page.md"
    kept.write_text(json.dumps(results()))
    runner = CliRunner(env={"COLUMNS": "200"})  # nothing wraps
    done = runner.invoke(command.main, ["--read", str(kept), "--markdown", str(page)])
    assert done.exit_code == 0, done.output
    assert "eager call 4x8x16" in done.output
    assert page.read_text().startswith("# Performance\n")


def test_subjects_are_run_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def run(subject: str, *, quick: bool) -> tuple[list[Row], int]:
        asked.append((subject, quick))
        return [Row(f"of {subject}", 1.0, "x")], int(subject == "idle")

    monkeypatch.setattr(command, "run", run)
    kept = tmp_path / "rows.json"
    done = CliRunner().invoke(command.main, ["dense", "idle", "--quick", "--json", str(kept)])
    assert asked == [("dense", True), ("idle", True)]
    assert done.exit_code == 1
    assert "did not finish: idle" in done.output
    written = json.loads(kept.read_text())
    assert written["quick"] is True
    assert [row["what"] for row in written["subjects"]["dense"]] == ["of dense"]


def test_every_subject_is_a_module() -> None:
    folder = Path(command.__file__).parent
    for subject in command.SUBJECTS:
        assert (folder / f"{subject}.py").exists() or (folder / subject / "__main__.py").exists()


def test_a_picture_wants_the_peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "PEERS_PYTHON", tmp_path / "python")
    kept = tmp_path / "rows.json"
    kept.write_text(json.dumps(results()))
    done = CliRunner().invoke(command.main, ["--read", str(kept), "--plot", str(tmp_path / "p")])
    assert done.exit_code == 1
    assert "which `make bench` makes" in done.output
