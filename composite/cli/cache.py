"""`composite cache`: the kernels of this user in a file, for other machines.

Not for: what is in it (composite/kernels/shipping.py).
"""

from __future__ import annotations

from pathlib import Path

import click

_FILE = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@click.group(short_help="Ship kernels: write those of the cache to a file, or take them from one.")
def cache() -> None:
    """Ship the kernels of this user's cache to other machines.

    \b
    Examples:
      composite cache export kernels.zip
      composite cache import kernels.zip

    Kernels are machine code: import files only from those whom you trust.
    """  # noqa: D301 - click's mark for lines that are not rewrapped


@cache.command("export", short_help="Write kernels of the cache to a file.")
@_FILE
@click.option(
    "ops",
    "--op",
    multiple=True,
    metavar="NAME",
    help="Only kernels of this op, or of the region region:1a2b3c4d, as reports have its last "
    "digits; may be given several times.",
)
@click.option(
    "--days",
    type=click.FloatRange(min=0, min_open=True),
    help="Only kernels that were used in so many days.",
)
def export(file: Path, ops: tuple[str, ...], days: float | None) -> None:
    """Write kernels of the cache, and what was measured, to FILE.

    \b
    Examples:
      composite cache export kernels.zip
      composite cache export kernels.zip --days 1
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    import composite

    click.echo(composite.export_cache(file, ops=ops, days=days))


@cache.command("import", short_help="Take the kernels of a file into the cache.")
@_FILE
def import_(file: Path) -> None:
    """Take the kernels that FILE has for this machine into the cache.

    \b
    Example:
      composite cache import kernels.zip

    They are machine code: import files only from those whom you trust. What the cache has already
    stays as it is; what is left out is counted, with the reason.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    import composite

    click.echo(composite.import_cache(file))
