"""`composite replay`: regions that were dumped with their inputs, run again.

Not for: what is compared (composite/acceleration/replaying.py).
"""

from __future__ import annotations

from pathlib import Path

import click

from composite.cli import failures


@click.command(short_help="Run regions that were dumped, and compare their kernels.")
@click.argument("dump", type=click.Path(exists=True, path_type=Path))
@click.option("--no-times", is_flag=True, help="Time nothing.")
def replay(dump: Path, *, no_times: bool) -> None:
    """Run the regions in the folder DUMP, or in one file of it, with the inputs they had.

    \b
    Example:
      COMPOSITE_REGIONS=1 COMPOSITE_REGIONS_DUMP=dump python serve.py
      composite replay dump

    Each gets a kernel, which is compared with the region's ops in float64. The exit code is 3 when
    one is wrong, or could not be checked.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    import composite

    report = composite.replay(dump, timed=not no_times)
    click.echo(report)
    if not report.is_right:
        raise click.exceptions.Exit(failures.DIFFERS)
