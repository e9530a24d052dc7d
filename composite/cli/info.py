"""`composite info`: what a saved model needs."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(short_help="Say what a saved model needs: ops, libraries, TensorFlow.")
@click.argument("model", type=click.Path(path_type=Path))
def info(model: Path) -> None:
    """Say what the SavedModel in the folder MODEL, or the file of Keras, needs to be loaded.

    \b
    Examples:
      composite info model
      composite info model.keras

    Ops are named with the module that defined them; libraries, with what lies inside. The model is
    read, and nothing of it is loaded or run.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    from composite.saving import info as saved

    click.echo(saved.read(model))
