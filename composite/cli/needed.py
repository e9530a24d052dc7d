"""The options by which a command is given ops that another program or a model needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

_LIBRARY = click.option(
    "libraries",
    "--library",
    multiple=True,
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="A built library that defines ops, to load before; may be given several times.",
)
_SOURCE = click.option(
    "sources",
    "--source",
    multiple=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A Python file that defines ops, to import before; may be given several times.",
)


def options(command: Command) -> Command:
    """Decorator: the command takes `libraries` and `sources`."""
    return _LIBRARY(_SOURCE(command))


def load(libraries: Sequence[Path], sources: Sequence[Path]) -> None:
    """Loads the libraries, and then imports the files. Raises as `composite.load` and the files."""
    import composite
    from composite.aot import sources as python_files

    for folder in libraries:
        composite.load(folder)
    for source in sources:
        python_files.find(source)
