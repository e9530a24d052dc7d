"""Debian's Bazel for the tests: where it is, and how it is called.

Not for: installing it, which `make bazel` does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

_RULES = Path("/usr/share/bazel/rules/java")


class Bazel(Protocol):
    """The type of the `bazel` fixture."""

    def __call__(
        self, workspace: Path, command: str, *arguments: str, python: str = sys.executable
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(scope="module")
def bazel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bazel]:
    """`bazel(workspace, "build", "//...")`: the finished process, whatever its exit code.

    Its output goes to a temporary folder, with a server for each workspace until the module's end.
    """
    executable = shutil.which("bazel")
    if executable is None or not _RULES.is_dir():
        reason = "Debian's Bazel is not installed: `make bazel` says how it comes"
        if os.environ.get("COMPOSITE_EXPECT_BAZEL"):
            pytest.fail(reason)
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("bazel")
    start = [executable, f"--output_user_root={root}"]
    start += ["--host_jvm_args=-Xmx512m", "--max_idle_secs=300"]
    used: set[Path] = set()

    def run(
        workspace: Path, command: str, *arguments: str, python: str = sys.executable
    ) -> subprocess.CompletedProcess[str]:
        used.add(workspace)
        flags = [f"--repo_env=COMPOSITE_PYTHON={python}"] if command in ("build", "test") else []
        flags += ["--symlink_prefix=/", "--jobs=2", "--noshow_progress"] if flags else []
        return subprocess.run(
            [*start, command, *flags, *arguments],
            cwd=workspace,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    yield run
    for workspace in used:
        run(workspace, "shutdown")
    # Bazel takes away the right to write.
    subprocess.run(["chmod", "-R", "u+w", str(root)], check=False, capture_output=True)
    shutil.rmtree(root, ignore_errors=True)
