"""`composite recognize`: a SavedModel in which ops take the place of what computes the same.

Not for: what that is (composite/recognition).
"""

from __future__ import annotations

from pathlib import Path

import click

from composite.cli import folders, needed, reports


@click.command(short_help="Put ops into a SavedModel that was written without them.")
@folders.options
@click.option(
    "names",
    "--op",
    multiple=True,
    metavar="NAME",
    help="An op to look for, by default all; may be given several times.",
)
@reports.option
@needed.options
def recognize(  # noqa: PLR0913, PLR0917 - one parameter an option
    model: Path,
    out: Path,
    names: tuple[str, ...],
    html: Path | None,
    libraries: tuple[Path, ...],
    sources: tuple[Path, ...],
) -> None:
    """Save the SavedModel in the folder MODEL again, with ops where it computes what they do.

    \b
    Examples:
      composite recognize model -o out --source ops.py
      composite recognize model -o out --library out_ops --op LayerNorm

    The model's Python code is not needed. The ops are those of the libraries and files; where a
    part of the model computes what one of them does, in whichever spelling, it is replaced.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    import composite
    from composite.ops.registry import OPS

    needed.load(libraries, sources)
    ops = [(name, OPS.current(name)) for name in names]
    for name, op in ops:
        if op is None:
            raise click.BadParameter(f"no library or file has an op {name}", param_hint="--op")
    report = composite.recognize(model, [op for _, op in ops if op is not None] or None, out=out)
    reports.tell(report, html, out)
