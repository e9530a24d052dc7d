"""The options by which a command is told how to call a signature of a SavedModel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


class _Array(click.ParamType):
    """NAME=FILE.npy, as the name and the array."""

    name = "array"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, Any]:
        """The name and the content of the file."""
        import numpy as np

        name, _, file = value.partition("=")
        if not name or not file:
            self.fail(f"{value!r} is not NAME=FILE.npy", param, ctx)
        try:
            return name, np.load(file)
        except (OSError, ValueError) as error:
            self.fail(f"{file}: {error}", param, ctx)


_OPTIONS = (
    click.option(
        "inputs",
        "--input",
        multiple=True,
        metavar="NAME=FILE.npy",
        type=_Array(),
        help="Values of an input; inputs without are drawn. May be given several times.",
    ),
    click.option(
        "--size",
        type=click.IntRange(min=1),
        default=8,
        show_default=True,
        help="What drawn inputs have for a dim that is not known.",
    ),
    click.option(
        "deny",
        "--deny",
        multiple=True,
        metavar="ENTRY",
        help="What gets no kernel: an op, name:PATTERN or region:DIGITS; several times.",
    ),
    click.option(
        "--rtol", type=float, help="How far results may be, as a part of the largest |y|."
    ),
    click.option("--timeout", type=float, help="Seconds to wait for the kernels of a signature."),
)


def options(command: Command) -> Command:
    """Decorator: the command takes `inputs`, `size`, `deny`, `rtol` and `timeout`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
