"""A side for tests of the protocol: NumPy's own reference, and what can go wrong."""

from __future__ import annotations

import os
import time

from benchmarks.sides.side import Settings, Way
from benchmarks.works.work import Program


class Fake:
    """Runs a program by its reference; a "GELU" is wrong, an "attention" ends the process."""

    def versions(self) -> dict[str, str]:
        print("noise on stdout")
        return {"fake": "1.0"}

    def columns(self, program: Program) -> dict[str, Settings]:
        if program.kind == "attention":
            os._exit(3)
        if program.kind == "matmul":
            return {}
        wrong = 2 if program.kind == "GELU" else 1

        def way(seconds: float) -> Way:
            return Way(lambda: time.sleep(seconds), lambda: program.reference * wrong, "by NumPy")

        return {"fake": {"slow": lambda: way(0.004), "fast": lambda: way(0.001)}}


def side() -> Fake:
    return Fake()
