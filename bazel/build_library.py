"""Runs `composite build` for the rule op_library: what the action of library.bzl executes.

The inputs are copied to where runfiles would be, so that an import finds what was declared and
nothing else: Bazel's sandbox holds links, and whoever follows one is outside. All that is written
goes to a temporary folder, the compiler's cache and $HOME included; then the declared outputs are
copied to their places.

Not for: what is built, and when (library.bzl).
"""

from __future__ import annotations

import argparse
import json
import os
import posixpath
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str]) -> int:
    """The action: 0, or the exit code of `composite build`."""
    arguments = _parser().parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="composite-", dir=Path.cwd()) as folder:
        work = Path(folder)
        stage = work / "runfiles"
        for name, path in arguments.file:
            # That of another repository begins with ../.
            place = stage / posixpath.normpath(posixpath.join(arguments.workspace, name))
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        command = [sys.executable, "-m", "composite", "build", "--json", "--out", str(work / "out")]
        command += [*arguments.flag, str(stage / posixpath.normpath(arguments.source))]
        if arguments.signatures:
            command += ["--signatures", str(Path(arguments.signatures).absolute())]
        if arguments.tuned:
            command += ["--tuned", str(Path(arguments.tuned).absolute())]
        for manifest in arguments.dep:
            command += ["--dep", str(Path(manifest).parent.absolute())]
        done = subprocess.run(
            command,
            cwd=stage,
            env=_environment(work, stage, getattr(arguments, "import")),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            # Places are those of the workspace, as Bazel prints its own.
            text = (done.stdout + done.stderr).replace(f"{stage / arguments.workspace}/", "")
            sys.stderr.write(f"{arguments.label}: {text.replace(f'{stage}/', 'external/')}")
            return done.returncode
        for note in json.loads(done.stdout)["notes"]:
            sys.stderr.write(f"{arguments.label}: note: {note}\n")
        for output in arguments.output:
            shutil.copyfile(work / "out" / Path(output).name, output)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("--source", required=True, help="the Python file, from the runfiles")
    parser.add_argument("--label", required=True, help="who it is built for")
    parser.add_argument("--workspace", required=True, help="the main repository's folder there")
    parser.add_argument("--file", nargs=2, action="append", default=[], help="short path, path")
    parser.add_argument("--import", action="append", default=[], help="for the module search path")
    parser.add_argument("--output", action="append", default=[], help="a file to write")
    parser.add_argument("--dep", action="append", default=[], help="the manifest of a library")
    parser.add_argument("--signatures", help="for composite build")
    parser.add_argument("--tuned", help="for composite build")
    parser.add_argument("--flag", action="append", default=[], help="as it is, for composite build")
    return parser


def _environment(work: Path, stage: Path, imports: Sequence[str]) -> dict[str, str]:
    """The whole environment of the build: nothing of the user's but the compiler."""
    for name in ("home", "cache", "tmp"):
        (work / name).mkdir(mode=0o700)
    # As in a py_binary: the folder of all repositories, what rules ask for, each repository.
    path = [stage, *(stage / name for name in imports), *sorted(stage.iterdir())]
    return {
        "CC": os.environ["CC"],
        "COMPOSITE_CACHE_DIR": str(work / "cache"),
        "HOME": str(work / "home"),
        "PATH": os.environ["PATH"],
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TMPDIR": str(work / "tmp"),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
