"""`composite bisect`: the region of a SavedModel that makes results differ.

Not for: how it is found (composite/acceleration/bisecting.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from composite.cli import needed, signature_calls


@click.command(short_help="Find the region that makes a SavedModel's results differ.")
@click.argument("model", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--signature",
    default="serving_default",
    show_default=True,
    metavar="NAME",
    help="The signature to look at.",
)
@signature_calls.options
@needed.options
def bisect(  # noqa: PLR0913, PLR0917 - one parameter an option
    model: Path,
    signature: str,
    inputs: tuple[tuple[str, Any], ...],
    size: int,
    deny: tuple[str, ...],
    rtol: float | None,
    timeout: float | None,
    libraries: tuple[Path, ...],
    sources: tuple[Path, ...],
) -> None:
    """Find the region that moves a signature's results, in the SavedModel in the folder MODEL.

    \b
    Example:
      composite bisect model --input x=batch.npy --rtol 1e-5

    The signature is run without regions, with all of them, and with ever fewer until one is left.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    import composite

    needed.load(libraries, sources)
    report = composite.bisect(
        model,
        dict(inputs),
        signature=signature,
        size=size,
        deny=deny,
        rtol=rtol,
        timeout=timeout,
    )
    click.echo(report)
