"""`python -m benchmarks compare OLD.json NEW.json`: what changed beyond noise."""

from __future__ import annotations

import json
from pathlib import Path

import click

from benchmarks.report import changes

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command(epilog=changes.RULE)
@click.argument("old", type=_FILE)
@click.argument("new", type=_FILE)
def main(old: Path, new: Path) -> None:
    """Say what changed between two runs, whose results --json kept, beyond noise."""
    kept = [json.loads(path.read_text(encoding="utf-8")) for path in (old, new)]
    for line in changes.lines(*kept):
        click.echo(line)
