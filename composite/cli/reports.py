"""The report of a command that writes a SavedModel: printed, and on demand a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

option = click.option(
    "--html",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the report as a page, too.",
)


def tell(report: Any, html: Path | None, out: Path) -> None:
    """Prints a report and the folder that was written; the report is in the file `html`, too."""
    click.echo(report)
    if html is not None:
        html.write_text(report.to_html(), encoding="utf-8")
    click.echo(out)
