"""`composite tune`: a faster kernel for a call; `composite merge`: several files as one.

Not for: how it is found (composite/tuning).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from composite.cli import calls

_SHOWN = 10  # of the trials, the fastest


@click.command(short_help="Search for a faster kernel for a call.")
@click.argument("target", type=calls.TargetType(), metavar="FILE[:OP]")
@calls.options
@click.option(
    "constants",
    "--constant",
    metavar="NAME",
    multiple=True,
    help="An input that is the same in every call, such as a weight; may be given several times.",
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=64,
    show_default=True,
    help="How many candidates to try, those that the database knows included.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="How long it may take, compiling included.",
)
@click.option(
    "--database",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write; by default that of COMPOSITE_TUNED, else one that every process of "
    "this user consults.",
)
@click.option("--tracker", metavar="HOST:PORT", help="A TVM RPC tracker, whose servers measure.")
@click.option("--key", default="", metavar="KEY", help="Of those servers.")
@click.option("as_json", "--json", is_flag=True, help="Print what was found as JSON.")
def tune(  # noqa: PLR0913, PLR0917 - one parameter an option
    target: calls.Target,
    constants: tuple[str, ...],
    trials: int,
    seconds: float | None,
    database: Path | None,
    tracker: str | None,
    key: str,
    *,
    as_json: bool,
    **call: Any,
) -> None:
    """Search for a faster kernel for a call, and keep what is found in a file.

    \b
    Examples:
      composite tune ops.py:dense --shape x=32,1024 --shape w=1024,1024 --shape b=1024
      composite tune ops.py:dense --shape x=batch,1024 --shape w=1024,1024 --shape b=1024 \\
          --constant w --seconds 120 --database tuned.json

    A dim with a name varies: the kernel that is tuned is the one for all its sizes.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    import composite
    from composite.progress.event import ignored

    if bool(tracker) != bool(key):
        raise click.UsageError("--tracker and --key go together")
    op = target.one()
    arguments = _constant(calls.arguments(op, calls.CallOptions(**call)), constants)
    found = composite.tune(
        op, trials=trials, seconds=seconds, database=database, tracker=tracker, key=key,
        progress=ignored if as_json else None, **arguments,
    )  # fmt: skip
    if as_json:
        click.echo(json.dumps(_plain(found), indent=1))
    else:
        _print(found)


def _constant(arguments: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The arguments, of which the named inputs are marked as constants."""
    for name in names:
        spec = arguments.get(name)
        if not isinstance(spec, tuple):
            raise click.UsageError(f"--constant {name}: there is no such input that is one tensor")
        arguments[name] = (*spec[:2], "constant")
    return arguments


def _plain(found: Any) -> dict[str, Any]:
    return {
        "op": found.op_name,
        "call": found.call,
        "choices": found.choices,
        "us": found.us,
        "default_us": found.default_us,
        "seconds": found.seconds,
        "measured": found.measured,
        "database": str(found.database),
        "trials": [row._asdict() for row in found.trials],
    }


def _print(found: Any) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    table = Table()
    for column in ("of the default", "us", "choices"):
        table.add_column(column, justify="left" if column == "choices" else "right")
    measured = sorted((r for r in found.trials if r.ratio is not None), key=lambda r: r.ratio)
    for row in measured[:_SHOWN]:
        choices = ", ".join(f"{name}={value}" for name, value in row.choices.items())
        table.add_row(f"{row.ratio:.2f}", f"{row.us:.1f}", escape(choices))
    if measured:
        console.print(table)
    failed = [row.error for row in found.trials if row.error]
    if failed:
        console.print(f"{len(failed)} failed, the first: {escape(failed[0])}", soft_wrap=True)
    console.print(escape(str(found)), soft_wrap=True)
    known = f"{found.measured} measured in {found.seconds:.1f} s"
    console.print(f"{known}; {escape(str(found.database))}", soft_wrap=True)


@click.command(short_help="Put what several tunings found into one file.")
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=click.Path(dir_okay=False, path_type=Path),
)
@click.option(
    "out",
    "-o",
    "--out",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to write, which may be one of them.",
)
def merge(files: tuple[Path, ...], out: Path) -> None:
    """Put what several tunings found into one file; the order makes no difference.

    \b
    Example:
      composite merge mine.json theirs.json -o tuned.json
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    from composite.kernels.tuned import Database

    merged = Database()
    for file in files:
        merged.merge(Database.read(file))
    merged.write(out)
    trials = sum(len(record.trials) for record in merged.records.values())
    click.echo(f"{out}: {len(merged.records)} kernels, {trials} trials")
