"""`composite tune`, what it writes, and what `composite build --tuned` makes of it."""

from __future__ import annotations

import json
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from composite.cli.main import main
from composite.kernels.tuned import Database, Measured, Record, Trial
from composite.tuning import tune as conductor
from composite.tuning.space import Built

OPS = Path(__file__).parents[1] / "dense_ops.py"
CALL = ("--shape", "input_=n,44", "--shape", "filter_=60,44", "--shape", "bias=60")


def run(*args: object) -> Any:
    return CliRunner().invoke(main, [str(arg) for arg in args])


class Made:
    """Finds every candidate twice as fast as the default, the later the faster."""

    workers = 1
    machine = "made up"

    def __init__(self, default: Built) -> None:
        self.code = default.code
        self.calls = 0

    def submit(self, candidate: Built, seconds: float) -> Future[Measured]:
        self.calls += 1
        ratio = 0.5 - self.calls / 100
        found: Future[Measured] = Future()
        found.set_result(Measured(20 * ratio, 20.0, ratio, ratio, ratio, 9, self.code))
        return found

    def elsewhere(self, candidate: Built, seconds: float) -> list[Measured]:
        return []

    def close(self) -> None:
        pass


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conductor, "_measurer", lambda *_: Made)
    monkeypatch.setattr(conductor, "_install", lambda _: None)


@pytest.mark.slow
@pytest.mark.usefixtures("made_up")
def test_it_tells_what_it_found_and_a_library_is_built_of_it(tmp_path: Path) -> None:
    file = tmp_path / "tuned.json"
    call = ("tune", f"{OPS}:dense", *CALL, "--attr", "act=RELU", "--database", file)
    done = run(*call, "--trials", 2)
    assert done.exit_code == 0, done.output
    assert "TestDense(s0x44, 60x44, 60; T=float32, act=RELU) -> gemm." in done.output
    assert "of the default's 20.0 us, after 2 trials" in done.output
    assert f"; {file}" in done.output
    done = run(*call, "--trials", 2, "--json")
    said = json.loads(done.stdout)
    assert (said["measured"], len(said["trials"])) == (0, 2)
    assert said["choices"]

    signatures = tmp_path / "calls.json"
    shapes = {"input_": ["n", 44], "filter_": [60, 44], "bias": [60]}
    one = {name: ["float32", dims] for name, dims in shapes.items()}
    signatures.write_text(json.dumps({"dense": [{**one, "act": "RELU"}, {**one, "act": "TANH"}]}))
    build = ("build", OPS, "-o", tmp_path / "out", "--signatures", signatures, "--kinds", 0)
    done = run(*build, "--tuned", file, "--json")
    assert done.exit_code == 0, done.output
    made = json.loads(done.stdout)
    strategies = {k["attributes"]: k["strategy"] for k in made["kernels"] if k["op"] == "TestDense"}
    assert strategies["T=float32, act=RELU"] == "gemm (tuned)"
    assert strategies["T=float32, act=TANH"] == "gemm"
    assert not json.loads(run(*build, "--tuned", file, "--json").stdout)["built"]
    # Another database is another library.
    database = Database.read(file)
    database.records["0" * 32] = Record("Other", "", "")
    database.write(file)
    assert json.loads(run(*build, "--tuned", file, "--json").stdout)["built"]


def test_a_database_that_is_none_builds_nothing(tmp_path: Path) -> None:
    file = tmp_path / "tuned.json"
    build = ("build", OPS, "-o", tmp_path / "out", "--kinds", 0, "--tuned", file)
    done = run(*build)
    assert (done.exit_code, done.output) == (1, f"composite: {file}: No such file or directory\n")
    file.write_text("[]")
    done = run(*build)
    assert done.exit_code == 1
    assert f"{file} is no tuning database" in done.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--tracker", "here:1"), "--tracker and --key go together"),
        (("--constant", "weights"), "there is no such input"),
        (("--trials", "0"), "0 is not in the range"),
        (("--seconds", "0"), "range"),
    ],
)
def test_a_wrong_command_line(options: tuple[str, ...], text: str) -> None:
    done = run("tune", f"{OPS}:dense", *CALL, *options)
    assert done.exit_code == 2
    assert text in done.output


def test_files_are_merged(tmp_path: Path) -> None:
    files = []
    for code in ("aa", "bb"):
        files.append(tmp_path / f"{code}.json")
        Database({"k": Record("Op", "2x3", "v3", {code: Trial({})})}).write(files[-1])
    out = tmp_path / "both.json"
    done = run("merge", *files, "-o", out)
    assert (done.exit_code, done.output) == (0, f"{out}: 1 kernels, 2 trials\n")
    assert sorted(Database.read(out).records["k"].trials) == ["aa", "bb"]
    files[0].write_text("{")
    done = run("merge", *files, "-o", out)
    assert done.exit_code == 1
    assert "no tuning database" in done.output
    assert sorted(Database.read(out).records["k"].trials) == ["aa", "bb"]
