"""`composite build`: a Python file to a library."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from composite.aot import inputs

if TYPE_CHECKING:
    from composite.aot.build_options import Options


@click.command(short_help="Build a library of the ops in a Python file.")
@click.argument("source", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "out",
    "-o",
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder to write; a library that is there is replaced when all went well.",
)
@click.option("--name", help="The library's name, an identifier; by default the file's.")
@click.option(
    "targets",
    "--target",
    multiple=True,
    metavar="LEVEL",
    help="What to compile for: a CPU level, as x86-64-v3; cpu, the highest level that this machine "
    "has, which is the default; aarch64; a level of GPUs, as cuda:sm_90. May be given several "
    "times.",
)
@click.option(
    "signature_file",
    "--signatures",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Calls that kernels are compiled for: JSON, or what COMPOSITE_RECORD wrote.",
)
@click.option(
    "--kinds",
    type=click.IntRange(min=0),
    default=16,
    show_default=True,
    metavar="N",
    help="For each op without stated calls, compile for at most N kinds of calls: dtypes, "
    "enumerated attributes, ranks, with dims that vary. 0 for none.",
)
@click.option(
    "--tuned",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A tuning database, which `composite tune` wrote: kernels are made as was found.",
)
@click.option(
    "--numerics",
    type=click.Choice(["fast", "invariant"]),
    default="fast",
    show_default=True,
    help='invariant: kernels for calls with numerics="invariant", and for no others.',
)
@click.option(
    "deps",
    "--dep",
    multiple=True,
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="A built library, of ops that SOURCE calls: their kernels are there and are not compiled "
    "again; may be given several times.",
)
@click.option(
    "--registration",
    is_flag=True,
    help="Write NAME.c too, the C source that registers the ops.",
)
@click.option("--force", is_flag=True, help="Build even if nothing has changed.")
@click.option(
    "--depfile",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write what the library is made of, for make or ninja: a rule for FILE without its .d.",
)
@click.option("as_json", "--json", is_flag=True, help="Print what was built as JSON.")
def build(  # noqa: PLR0913, PLR0917 - one parameter an option
    source: Path,
    out: Path,
    name: str | None,
    targets: tuple[str, ...],
    signature_file: Path | None,
    kinds: int,
    tuned: Path | None,
    numerics: str,
    deps: tuple[Path, ...],
    *,
    registration: bool,
    force: bool,
    depfile: Path | None,
    as_json: bool,
) -> None:
    """Build a library of the ops in the Python file SOURCE, with kernels compiled ahead of time.

    \b
    Examples:
      composite build ops.py -o out --name test_ops
      composite build ops.py -o out --target x86-64-v2 --target x86-64-v3
      COMPOSITE_RECORD=calls.jsonl python serve.py; composite build ops.py -o out \\
          --signatures calls.jsonl

    SOURCE is imported, once, as Python would. Nothing is built again while the source, what it
    imports, the options and the versions are the same.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    from composite.aot import build_options

    start = time.perf_counter()
    if not source.is_file():
        raise FileNotFoundError(f"there is no file {source}")
    signatures = build_options.read(signature_file) if signature_file else {}
    options = build_options.Options(
        name or source.stem,
        signatures,
        targets,
        kinds,
        of_a_run=True,
        elsewhere=build_options.elsewhere(deps),
        registration=registration,
        tuned=tuned,
        numerics=numerics,
    )
    if not options.name or not options.name.isidentifier():
        raise click.UsageError(f"--name {options.name}: it is not an identifier")
    is_new, notes = force or not inputs.is_current(out, source, options.plain(source)), []
    if is_new:
        notes = _run(source, out, options, force=force, quiet=as_json)
    content = json.loads((out / inputs.MANIFEST).read_text(encoding="utf-8"))
    if depfile is not None:
        depfile.write_text(inputs.rule(depfile.with_suffix(""), source, content), encoding="utf-8")
    timings = json.loads((out / inputs.TIMINGS).read_text(encoding="utf-8"))["kernels"]
    if as_json:
        _print_json(out, content, timings, notes, is_new=is_new)
    else:
        _print(out, content, timings, notes, seconds=time.perf_counter() - start, is_new=is_new)


def _run(source: Path, out: Path, options: Options, *, force: bool, quiet: bool) -> list[str]:
    from composite.aot import building
    from composite.progress.event import ignored

    progress = ignored if quiet else None
    return list(building.run(source, out, options, progress=progress, force=force).notes)


def _print_json(out: Path, content: Any, timings: Any, notes: list[str], *, is_new: bool) -> None:
    kernels = [
        {n: v for n, v in kernel.items() if n != "record"} | timings.get(kernel["name"], {})
        for kernel in content["kernels"]
    ]
    ops = [{"name": op["python_name"], "op": op["op"]} for op in content["ops"]]
    answer = {
        "library": str(out),
        "name": content["name"],
        "built": is_new,
        "ops": ops,
        "kernels": kernels,
        "notes": notes,
    }
    click.echo(json.dumps(answer, indent=1))


def _print(  # noqa: PLR0913 - what there is to say
    out: Path, content: Any, timings: Any, notes: list[str], *, seconds: float, is_new: bool
) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    table = Table()
    for column in ("op", "call", "CPU", "us", "TF us", "runs"):
        table.add_column(column, justify="right" if "us" in column else "left")
    for op in content["ops"]:
        own = [k for k in content["kernels"] if k["op"] == op["op"]]
        for kernel in own:
            times = timings.get(kernel["name"], {})
            call = f"{kernel['shapes']}; {kernel['attributes']}"
            us = (f"{times.get(n, 0):.1f}" for n in ("kernel_us", "expansion_us"))
            table.add_row(op["python_name"], escape(call), kernel["isa"], *us, times.get("verdict"))
        if not own:
            table.add_row(op["python_name"], "no kernel", "", "", "", "expansion")
    if is_new:
        console.print(table)
    for note in notes:
        console.print(f"note: {escape(note)}", soft_wrap=True)
    said = "built" if is_new else "nothing has changed:"
    count = f"{len(content['ops'])} ops, {len(content['kernels'])} kernels"
    console.print(f"{said} {escape(str(out))}: {count}, {seconds:.1f} s", soft_wrap=True)
