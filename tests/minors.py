"""Builds the project for another version of TensorFlow, and tests it: `make minors`.

    python -m tests.minors 2.22.0rc0 [tests, or other arguments of pytest]

A copy of the checkout in build/minors/2.22 is built there. Its environment, .venv-2.22, has what
requirements.lock states, but for TensorFlow, and for Keras, whose version and name TensorFlow
chooses. Without tests named, those run that hold what the project takes of TensorFlow's private
API, and some of each thing that users do; `python -m tests.minors 2.22.0rc0 tests` runs all.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = (
    "tests/compiler/frontend/test_tf_ops.py",
    "tests/compiler/frontend/test_raw_ops.py",
    "tests/composite/acceleration/test_direct.py",
    "tests/composite/autodiff",
    "tests/composite/binding",
    "tests/composite/editing",
    "tests/composite/hybrid",
    "tests/composite/ops",
    "tests/composite/profiling",
    "tests/composite/saving",
    "tests/composite/vectorize",
    "tests/runtime",
)
CHOSEN_BY_TENSORFLOW = ("tensorflow-cpu", "keras")


def main(version: str, arguments: list[str]) -> int:
    """Build and test; what pytest or make returns."""
    minor = ".".join(version.split(".")[:2])
    tree = ROOT / "build" / "minors" / minor
    copy_checkout(tree)
    write(tree / "requirements.lock", lock_for(version))
    venv = ROOT / f".venv-{minor}"
    print(f"TensorFlow {version}: {tree}, {venv}", flush=True)
    build = ["make", "-C", str(tree), f"VENV={venv}", "build"]
    if code := subprocess.run(build, check=False).returncode:
        return code
    chosen = arguments or [*TESTS, "-m", "not slow and not timed"]
    command = [str(venv / "bin" / "python"), "-m", "pytest", "-q", *chosen]
    return subprocess.run(command, cwd=tree, check=False).returncode


def copy_checkout(tree: Path) -> None:
    """What the checkout has now and git does not ignore; with its times, which make goes by."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    wanted = {name for name in listed.splitlines() if (ROOT / name).is_file()}
    list_file = tree / "build" / "copied.txt"
    former = list_file.read_text("utf-8").splitlines() if list_file.is_file() else []
    for name in set(former) - wanted:
        (tree / name).unlink(missing_ok=True)
    for name in wanted:
        source, copy = ROOT / name, tree / name
        if not copy.exists() or copy.stat().st_mtime != source.stat().st_mtime:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy, follow_symlinks=False)
    link = tree / "composite" / "compiler"
    if not link.is_symlink():
        link.symlink_to("../compiler")
    write(list_file, "\n".join(sorted(wanted)))


def lock_for(version: str) -> str:
    """The lines of requirements.lock, with this TensorFlow."""
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    names = [re.split(r"[=; ]", line, maxsplit=1)[0] for line in lines]
    kept = [x for name, x in zip(names, lines, strict=True) if name not in CHOSEN_BY_TENSORFLOW]
    return "\n".join([*kept, f"tensorflow-cpu=={version}", ""])


def write(path: Path, text: str) -> None:
    """Writes a file unless it has this content."""
    if not path.is_file() or path.read_text("utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
