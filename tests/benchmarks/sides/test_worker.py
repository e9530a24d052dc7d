"""The protocol between a run and its workers, with a worker that is not there to measure."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks.sides import worker
from benchmarks.sides.process import Lost, Process, Refused
from benchmarks.works.work import Work

ROOT = Path(__file__).resolve().parents[3]
# The module is named from benchmarks.sides, where a worker looks for its side.
START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1));"
    "import fake; sys.modules['benchmarks.sides.fake'] = fake;"
    "from benchmarks.sides.worker import main; main()"
)


@pytest.fixture
def process() -> Iterator[Process]:
    folder = str(Path(__file__).parent)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    made = Process([sys.executable, "-c", START, folder, "fake"], environment)
    yield made
    made.close()


def prepare(kind: str) -> dict[str, object]:
    return {"ask": "prepare", "work": asdict(Work(kind, (3, 4)))}


def test_a_worker_prepares_the_fastest_setting_and_times_it(process: Process) -> None:
    assert process.ask({"ask": "versions"}) == {"fake": "1.0"}
    columns = process.ask(prepare("softmax"))
    assert columns == {"fake": {"setting": "fast", "note": "by NumPy", "difference": 0.0}}
    timed = process.ask({"ask": "time", "column": "fake"})
    assert 0.001 <= timed < 0.1


def test_a_worker_prepares_the_files_of_a_model(tmp_path: Path) -> None:
    from benchmarks.sides.side import Settings, Way
    from benchmarks.works.model_work import ModelProgram, ModelWork

    class Models:
        def versions(self) -> dict[str, str]:
            return {}

        def columns(self, program: ModelProgram) -> dict[str, Settings]:
            program.write_call([], [np.ones(2)])
            ways = {"near": 1.0 + 1e-4, "far": 2.0} if program.batch == 1 else {"near": 1.0 + 1e-4}
            return {name: {"": partial(way, y)} for name, y in ways.items()}

    def way(y: float) -> Way:
        return Way(lambda: None, lambda: [np.ones(2) * y])

    made = worker.Worker(Models())
    work = ModelWork("BERT", 8, str(tmp_path))
    told = made.answer({"ask": "prepare", "work": asdict(work)})
    assert told["near"]["difference"] == pytest.approx(1e-4)
    assert made.answer({"ask": "time", "column": "near"}) >= 0
    with pytest.raises(ValueError, match="BERT: the result is 1 away from TensorFlow's"):
        made.answer({"ask": "prepare", "work": asdict(replace(work, batch=1))})


def test_what_a_worker_cannot_answer_is_refused_and_it_goes_on(process: Process) -> None:
    with pytest.raises(Refused, match="ValueError: GELU: the result is 1 away from the reference"):
        process.ask(prepare("GELU"))
    with pytest.raises(Refused, match="KeyError: 'fake'"):
        process.ask({"ask": "time", "column": "fake"})
    with pytest.raises(Refused, match="no such question: nothing"):
        process.ask({"ask": "nothing"})
    assert process.ask({"ask": "versions"}) == {"fake": "1.0"}


def test_a_worker_that_ends_is_lost(process: Process) -> None:
    with pytest.raises(Lost, match="noise on stdout|status 3"):
        process.ask(prepare("attention"))
    with pytest.raises(Lost):
        process.ask({"ask": "versions"})


def test_a_worker_that_does_not_start_says_why() -> None:
    command = [sys.executable, "-m", "benchmarks.sides.worker", "no_such_side"]
    process = Process(command, os.environ | {"PYTHONPATH": str(ROOT)})
    with pytest.raises(Lost, match="No module named 'benchmarks.sides.no_such_side'"):
        process.ask({"ask": "versions"})
    process.close()


def test_a_worker_that_does_not_answer_is_given_up() -> None:
    process = Process([sys.executable, "-c", "import time; time.sleep(60)"], os.environ)
    with pytest.raises(Lost, match=r"no answer to 'versions' within 0.1 s"):
        process.ask({"ask": "versions"}, timeout=0.1)
    process.kill()
    process.close()


def test_answers_are_lines_of_json() -> None:
    from tests.benchmarks.sides.fake import side

    answers = io.StringIO()
    questions = ['{"ask": "versions"}\n', "no json\n"]
    worker.Worker(side()).serve(questions, answers)
    first, second = (json.loads(line) for line in answers.getvalue().splitlines())
    assert first == {"answer": {"fake": "1.0"}}
    assert second["error"].startswith("JSONDecodeError")


def test_a_worker_that_stands_still_ends_with_its_parent() -> None:
    parent = textwrap.dedent("""
        import json, os, sys, time
        from benchmarks.sides.process import Process
        made = Process(json.loads(sys.argv[1]), os.environ)
        made.ask({"ask": "versions"})
        print(made._process.pid, flush=True)
        time.sleep(60)
    """)
    command = json.dumps([sys.executable, "-c", START, str(Path(__file__).parent), "fake"])
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", parent, command], stdout=subprocess.PIPE, env=environment
    ) as run:
        assert run.stdout is not None
        stat = Path(f"/proc/{int(run.stdout.readline())}/stat")
        assert _becomes(stat, "T")  # it stands still
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert _becomes(stat, "Z-")


def _becomes(stat: Path, states: str) -> bool:
    """Whether the state of a process is one of these within ten seconds."""
    end = time.monotonic() + 10
    while _state(stat) not in states and time.monotonic() < end:
        time.sleep(0.01)
    return _state(stat) in states


def _state(stat: Path) -> str:
    """The letter that stands for the state of a process, "-" if there is none."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "-"
