"""`composite accelerate`: a SavedModel whose signatures have kernels.

Not for: what that is (composite/acceleration).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from composite.cli import folders, needed, reports, signature_calls


@click.command(short_help="Give the signatures of a SavedModel kernels.")
@folders.options
@click.option(
    "signatures",
    "--signature",
    multiple=True,
    metavar="NAME",
    help="A signature to look at, by default all; may be given several times.",
)
@signature_calls.options
@click.option(
    "--min-ops", type=click.IntRange(min=0), help="How many ops that compute a region has at least."
)
@click.option(
    "--min-gain",
    type=float,
    help="A signature stays as it is unless it gets so many times as fast.",
)
@reports.option
@needed.options
def accelerate(  # noqa: PLR0913, PLR0917 - one parameter an option
    model: Path,
    out: Path,
    signatures: tuple[str, ...],
    inputs: tuple[tuple[str, Any], ...],
    size: int,
    deny: tuple[str, ...],
    rtol: float | None,
    timeout: float | None,
    min_ops: int | None,
    min_gain: float | None,
    html: Path | None,
    libraries: tuple[Path, ...],
    sources: tuple[Path, ...],
) -> None:
    """Save the SavedModel in the folder MODEL again, with kernels where they make it faster.

    \b
    Examples:
      composite accelerate model -o fast
      composite accelerate model -o fast --signature serving_default --input x=batch.npy

    The model's Python code is not needed. Each signature is run without and with kernels, compared
    and timed; one that gains nothing stays as it is. The kernels lie in the model that is written:
    composite.load_model(..., native_code=True) uses them.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    import composite

    needed.load(libraries, sources)
    least: dict[str, Any] = {"min_ops": min_ops, "min_gain": min_gain}
    report = composite.accelerate(
        model,
        dict(inputs),
        out=out,
        signatures=signatures or None,
        size=size,
        deny=deny,
        rtol=rtol,
        timeout=timeout,
        **{name: value for name, value in least.items() if value is not None},
    )
    reports.tell(report, html, out)
