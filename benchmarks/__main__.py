"""`python -m benchmarks [SUBJECT...]`: run the subjects, each in its own process; print a table."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.rows import Row, collect

SUBJECTS = (
    "roofline", "peers", "growth", "dense", "training", "eager", "decorate", "background_compile",
    "xla", "idle", "memory",
)  # fmt: skip


def run(subject: str) -> tuple[list[Row], int]:
    """The rows of one subject and the exit status of its process."""
    command = [sys.executable, "-m", f"benchmarks.{subject}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        rows = list(collect(process.stdout))
    return rows, process.returncode


def bound(row: Row) -> str:
    """The bound as text."""
    if row.at_least is not None:
        return f">= {row.at_least:g}"
    return f"<= {row.at_most:g}" if row.at_most is not None else ""


def table_of(results: dict[str, list[Row]]) -> Table:
    """All rows, coloured by whether they keep their bounds."""
    table = Table()
    for column in ("", "figure", "quartiles", "bound"):
        table.add_column(column, no_wrap=column != "")
    table.add_column("detail")
    for rows in results.values():
        for row in rows:
            colour = {True: "green", False: "bold red", None: "default"}[row.holds]
            spread = "" if row.low is None else f"{row.low:.3g} .. {row.high:.3g}"
            figure = f"[{colour}]{row.value:.3g} {row.unit}[/]"
            table.add_row(escape(row.what), figure, spread, bound(row), escape(row.detail))
        table.add_section()
    return table


@click.command()
@click.argument("subjects", nargs=-1, type=click.Choice(SUBJECTS))
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="keep the rows here")
def main(subjects: tuple[str, ...], json_path: Path | None) -> None:
    """Measure ours beside TensorFlow's ways, in one run; bounds that fail are shown, not fatal.

    Example: python -m benchmarks dense eager --json rows.json
    """
    console = Console()
    results: dict[str, list[Row]] = {}
    failed = []
    for subject in subjects or SUBJECTS:
        with console.status(f"{subject} ..."):
            results[subject], status = run(subject)
        if status != 0:
            failed.append(subject)
    console.print(table_of(results))
    if json_path is not None:
        rows = {name: [asdict(row) for row in rows] for name, rows in results.items()}
        json_path.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    if failed:
        raise click.ClickException(f"did not finish: {', '.join(failed)}")


if __name__ == "__main__":
    main()
