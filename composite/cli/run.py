"""`composite run`: another program, in a process that has ops of libraries or sources."""

from __future__ import annotations

import runpy
import shutil
import sys
from pathlib import Path

import click

from composite.cli import needed


@click.command(
    short_help="Run a Python program that knows nothing of this package, with ops loaded.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@needed.options
@click.option("module", "-m", is_flag=True, help="PROGRAM is the name of a module.")
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def run(  # noqa: PLR0913 - one parameter an option
    ctx: click.Context,
    libraries: tuple[Path, ...],
    sources: tuple[Path, ...],
    program: str,
    arguments: tuple[str, ...],
    *,
    module: bool,
) -> None:
    """Run the Python program PROGRAM with its ARGUMENTS, with ops of libraries or sources loaded.

    \b
    Examples:
      composite run --library out/digits_ops saved_model_cli show --dir model --all
      composite run --source ops.py evaluate.py --steps 100
      composite run --library out/digits_ops -m tf2onnx.convert --saved-model model ...

    PROGRAM is a file, a module after -m, or a command that is written in Python, on PATH or beside
    this Python. Its exit code is this command's.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    path = program if module else _found(program)
    needed.load(libraries, sources)
    sys.argv[:] = [path, *arguments]
    try:
        if module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(path).parent))  # as `python PROGRAM` has it
            runpy.run_path(path, run_name="__main__")
    except Exception:  # noqa: BLE001 - the program's own, told as without this command
        sys.excepthook(*sys.exc_info())
        ctx.exit(1)


def _found(program: str) -> str:
    """The file of a program. FileNotFoundError: there is none. ValueError: it is not in Python."""
    beside = str(Path(sys.executable).parent)  # where pip puts commands
    known = shutil.which(program) or shutil.which(program, path=beside)
    path = program if Path(program).is_file() else known
    if path is None:
        raise FileNotFoundError(f"there is no file {program}, and no command of that name on PATH")
    with Path(path).open("rb") as file:
        first = file.readline(200)
    if not (path.endswith(".py") or (first.startswith(b"#!") and b"python" in first)):
        raise ValueError(
            f"{path} is not written in Python: a C program calls composite_load_library (see "
            "docs/deploy.md)"
        )
    return path
