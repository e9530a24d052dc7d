"""The folders that a command reads a SavedModel from, and writes one to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_MODEL = click.argument("model", type=click.Path(file_okay=False, path_type=Path))
_OUT = click.option(
    "out",
    "-o",
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder to write; a model that is there is replaced when all went well.",
)


def options(command: Command) -> Command:
    """Decorator: the command takes `model` and `out`."""
    return _MODEL(_OUT(command))
