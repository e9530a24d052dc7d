"""One file of Keras's tests in this process, as `compare` asks for it; what it finds is in a log.

With COMPOSITE_REGIONS=1 each call of a tf.function is followed by a wait for the kernels that it
asked for, each kernel serves that passes its check, and the file runs twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

_WAIT = 60.0  # seconds for kernels, after a call
_MESSAGE = 500  # characters
# Its tests import this module of the repository, which the wheel has not.
_MARKERS = ("requires_trainable_backend", "multi_device")


class Log:
    """Lines of JSON: what begins, what became of it, and in the end what was counted."""

    def __init__(
        self,
        path: Path,
        left_out: list[str],
        named: str = "",
        launches: Callable[[], int] = lambda: 0,
    ) -> None:
        """`left_out`: tests that ended their process before; `named`: what begins their names."""
        self._file = path.open("a", encoding="utf-8")
        self._left_out = left_out
        self._pass = named
        self._launches = launches
        self._outcome, self._message = "passed", ""
        self._before = 0
        self.tests = 0
        self.with_kernels = 0

    def write(self, **entry: Any) -> None:
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()

    def pytest_configure(self, config: pytest.Config) -> None:
        for marker in _MARKERS:
            config.addinivalue_line("markers", f"{marker}: of Keras")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if _name(item.nodeid) not in self._left_out]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._outcome, self._message = "passed", ""
        self._before = self._launches()
        self.write(begins=self._pass + _name(nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome == "passed" or self._outcome not in ("passed", "skipped"):
            return
        self._outcome = report.outcome
        if report.failed:
            self._message = " ".join(str(report.longrepr).split())[-_MESSAGE:]

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        name = self._pass + _name(nodeid)
        self.with_kernels += self._launches() > self._before
        self.tests += 1
        self.write(test=name, outcome=self._outcome, message=self._message)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            message = " ".join(str(report.longrepr).split())[-_MESSAGE:]
            self.write(test=f"{self._pass}collection", outcome="error", message=message)


def _name(nodeid: str) -> str:
    """Of a test, without the folder that the file happens to be in."""
    path, colons, test = nodeid.partition("::")
    return path.rpartition("/")[2] + colons + test


def _launches() -> int:
    import composite

    return composite.stats()["kernel_launches"]


def main(asked: dict[str, Any]) -> None:
    """Runs the file."""
    _stand_in()
    if os.environ["COMPOSITE_REGIONS"] != "1":
        pytest.main(_arguments(asked), plugins=[Log(Path(asked["log"]), asked["left_out"])])
        return
    import composite  # before TensorFlow, as a user's program may do

    with _kernels_serve_soon():
        for number in (1, 2):
            log = Log(Path(asked["log"]), asked["left_out"], f"{number} ", _launches)
            before = composite.stats()
            pytest.main(_arguments(asked), plugins=[log])
            since = composite.stats() - before
            counts = {
                "tests": log.tests if number == 1 else 0,
                "regions": since["regions"],
                "compiled": since["answered"],
                "launches": since["kernel_launches"],
                "with_kernels": log.with_kernels,
            }
            log.write(counts=counts)


def _arguments(asked: dict[str, Any]) -> list[str]:
    arguments = ["-q", "-c", os.devnull, "-p", "no:cacheprovider", "-p", "no:xdist"]
    arguments += ["--rootdir", str(Path(asked["log"]).parent), "--pyargs", asked["module"]]
    if asked["selected"]:
        arguments += ["-k", asked["selected"]]
    return arguments


def _stand_in() -> None:
    """The module `conftest` of Keras's repository, as far as tests import it."""

    def skip_if_backend(given: str, reason: str) -> Any:
        return pytest.mark.skipif(os.environ["KERAS_BACKEND"] == given, reason=reason)

    module = types.ModuleType("conftest")
    module.skip_if_backend = skip_if_backend  # type: ignore[attr-defined]
    sys.modules["conftest"] = module


@contextlib.contextmanager
def _kernels_serve_soon() -> Iterator[None]:
    """Kernels are waited for, and serve once they are checked."""
    import tensorflow as tf

    from composite.jit import worker
    from tests.unmeasured import kernels_serve

    kind = type(tf.function(lambda: None))
    call = kind.__call__

    def called(function: Any, *args: Any, **kwargs: Any) -> Any:
        result = call(function, *args, **kwargs)
        if tf.executing_eagerly():
            worker.wait(_WAIT)
        return result

    with kernels_serve(), mock.patch.object(kind, "__call__", called):
        yield


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
