"""`composite export`: a SavedModel in another form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from composite.cli import folders, needed

if TYPE_CHECKING:
    from composite.saving.saving import Form

FORMS = ("portable", "inside", "nodes")


@click.command(short_help="Save a SavedModel again: portable, or with libraries inside.")
@folders.options
@click.option(
    "form",
    "--ops",
    type=click.Choice(FORMS),
    default=FORMS[0],
    show_default=True,
    help="What becomes of composites: functions of TensorFlow's own ops, nodes with their built "
    "libraries inside the model, or nodes.",
)
@click.option(
    "--update",
    is_flag=True,
    help="Have ops that MODEL has older versions of compute what they do today.",
)
@needed.options
def export(  # noqa: PLR0913, PLR0917 - a command's options
    model: Path,
    out: Path,
    form: str,
    update: bool,
    libraries: tuple[Path, ...],
    sources: tuple[Path, ...],
) -> None:
    """Save the SavedModel in the folder MODEL again, in another form.

    \b
    Examples:
      composite export model -o portable --library out/digits_ops
      composite export model -o bundle --ops inside --library out/digits_ops
      composite export model -o portable --source ops.py
      composite export portable -o newer --source ops.py --update

    The model's Python code is not needed; its ops are, from a library or a source. Libraries that
    lie inside MODEL are not loaded by themselves, since they are machine code: name them.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    import composite

    needed.load(libraries, sources)
    inside = libraries if form == "inside" else ()
    composite.save(model, out, cast("Form", form), libraries=inside, update=update)
    click.echo(out)
