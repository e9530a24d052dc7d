"""What every test shares: golden files, a private cache folder, Python in a process of its own.

Not for fixtures of one subject: those live beside their tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import pytest

from composite import native

ROOT = Path(__file__).resolve().parent.parent

# The folder of another runtime library, see `make asan`. Read here, before the tests' modules are
# imported: some load the library then.
SANITIZED = os.environ.get("COMPOSITE_TEST_RUNTIME")
if SANITIZED is not None:
    native.runtime_folder = Path(SANITIZED).resolve

_cache_dir = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the golden files with what the tests produce now",
    )


def pytest_configure(config: pytest.Config) -> None:
    # Set before anything imports composite: a test run neither reads nor fills the user's cache.
    # mkdtemp makes the folder 0700, which the cache insists on.
    config.stash[_cache_dir] = tempfile.mkdtemp(prefix="composite-tests-")
    os.environ["COMPOSITE_CACHE_DIR"] = config.stash[_cache_dir]
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def pytest_unconfigure(config: pytest.Config) -> None:
    if (worker := sys.modules.get("composite.jit.worker")) is not None:
        worker.stop()  # it may be about to write there
    shutil.rmtree(config.stash[_cache_dir], ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A process of its own imports TensorFlow again: seconds, however small the test is.
    for item in items:
        if "run_python" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(text, name)` compares text with `<folder of the test>/golden/<name>`."""

    def compare(text: str, name: str) -> None:
        path = request.path.parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            pytest.fail(f"{path} does not exist; run pytest with --update-golden to write it")
        assert text == path.read_text(encoding="utf-8"), (
            f"differs from {path}; if the change is meant, run pytest with --update-golden"
        )

    return compare


class RunPython(Protocol):
    """The type of the `run_python` fixture."""

    def __call__(
        self,
        code: str,
        *args: str,
        intra: int = 0,
        inter: int = 0,
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def run_python(tmp_path: Path) -> RunPython:
    """Run Python source in a fresh process, TensorFlow's pools of the given sizes (0: default).

    The source is written to a file, so that `inspect` finds decorated functions in it. A failure of
    the process fails the test with what it wrote, unless `check` is False.
    """

    def run(
        code: str,
        *args: str,
        intra: int = 0,
        inter: int = 0,
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        script = tmp_path / f"snippet_{len(list(tmp_path.glob('snippet_*.py')))}.py"
        script.write_text(code, encoding="utf-8")
        environment = dict(os.environ)
        path = [str(ROOT), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(p for p in path if p)
        if intra:
            environment["TF_NUM_INTRAOP_THREADS"] = str(intra)
        if inter:
            environment["TF_NUM_INTEROP_THREADS"] = str(inter)
        environment.update(env or {})
        done = subprocess.run(
            [sys.executable, str(script), *args],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode != 0:
            pytest.fail(
                f"the process ended with {done.returncode}\n{done.stdout}\n{done.stderr}",
                pytrace=False,
            )
        return done

    return run
