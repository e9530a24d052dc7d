"""`python -m benchmarks.sides.worker MODULE`: a side in a process of its own, at its parent's call.

The protocol: the parent writes one JSON object a line and waits for the answer, one JSON object a
line, `{"answer": ...}` or `{"error": text}`. A worker does nothing between an answer and the next
question, so that one process works at a time.

    {"ask": "versions"}                     distributions and their versions
    {"ask": "prepare", "work": {...}}       {column: {"setting", "note", "difference"}}
    {"ask": "time", "column": name}         seconds of a run

Imports NumPy and the side only: peers live in an environment without our packages.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from benchmarks.sides.side import Chosen, ModelSide, Side, choose, chunk
from benchmarks.works.model_work import ModelWork
from benchmarks.works.work import work_of


class Worker:
    """Answers the questions of the protocol for one side."""

    def __init__(self, side: Side | ModelSide) -> None:
        self._side: Any = side
        self._chosen: dict[str, Chosen] = {}

    def answer(self, question: dict[str, Any]) -> Any:
        """The answer to one question. ValueError for one that is not of the protocol."""
        match question["ask"]:
            case "versions":
                return self._side.versions()
            case "prepare":
                return self._prepare(question["work"])
            case "time":
                return self._time(self._chosen[question["column"]])
        raise ValueError(f"no such question: {question['ask']}")

    def serve(self, questions: Iterable[str], answers: TextIO) -> None:
        """Answer line by line until there is no more; what a question raises is its answer."""
        for line in questions:
            try:
                reply = {"answer": self.answer(json.loads(line))}
            except Exception as error:  # noqa: BLE001 - another process shows it, and goes on
                reply = {"error": f"{type(error).__name__}: {error}"}
            answers.write(json.dumps(reply) + "\n")
            answers.flush()

    def _prepare(self, fields: dict[str, Any]) -> dict[str, Any]:
        self._chosen = {}  # first: what was built for the last work may be large
        work = ModelWork(**fields) if "model" in fields else work_of(fields)
        program = work.program()
        for column, settings in self._side.columns(program).items():
            self._chosen[column] = choose(program, settings)
        return {
            column: {"setting": c.setting, "note": c.way.note, "difference": c.difference}
            for column, c in self._chosen.items()
        }

    @staticmethod
    def _time(chosen: Chosen) -> float:
        # Caches that the others have filled, threads that sleep: a model of 16 MB is back after a
        # chunk, not after a call.
        chunk(chosen.way.run, chosen.repeats)
        return chunk(chosen.way.run, chosen.repeats)


_PR_SET_PDEATHSIG = 1  # of linux/prctl.h


def end_with_parent() -> None:
    """Has the system end this process when its parent ends: one that stands still reads no end."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Serve the side of the module that is named, on what stdin and stdout were at the start."""
    end_with_parent()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    module = importlib.import_module(f"benchmarks.sides.{sys.argv[1]}")
    Worker(module.side()).serve(sys.stdin, answers)


if __name__ == "__main__":
    main()
