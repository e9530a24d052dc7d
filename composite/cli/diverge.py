"""`composite diverge`: the first line at which two ways to run an op part."""

from __future__ import annotations

import json
from typing import Any

import click

from composite.cli import calls, failures


@click.command(short_help="Find the first line whose value differs between two ways to run an op.")
@click.argument("target", type=calls.TargetType(), metavar="FILE[:OP]")
@calls.options
@click.option(
    "ways",
    "--way",
    nargs=2,
    default=("float64", "expansion"),
    show_default=True,
    metavar="WAY WAY",
    help="Two of: expansion, kernel, float64, float32, bfloat16, float16, a device (GPU:0), the "
    "folder of a built library; see docs/checking.md.",
)
@click.option("--gradient", is_flag=True, help="Run the gradient of the call.")
@click.option("--rtol", type=float, help="How far values may be apart, of the row's largest.")
@click.option("--samples", default=30, show_default=True, help="How many calls are drawn.")
@click.option("--seed", default=0, show_default=True, help="Of the inputs that are drawn.")
@click.option("as_json", "--json", is_flag=True, help="Print the report as JSON.")
def diverge(  # noqa: PLR0913 - one parameter an option
    target: calls.Target,
    ways: tuple[str, str],
    rtol: float | None,
    samples: int,
    seed: int,
    *,
    gradient: bool,
    as_json: bool,
    **call: Any,
) -> None:
    """Run an op in two ways, and say at which line of its body a value differs first.

    \b
    Examples:
      composite diverge ops.py:variance --shape x=4,1000
      composite diverge ops.py:dense --shape x=4,8 --shape w=3,8 --way expansion kernel
      composite diverge ops.py:dense --shape x=4,8 --shape w=3,8 --way expansion out/lib

    Without shapes, inputs are drawn. The exit code is 3 when a value differs, and 1 when nothing
    could be compared.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    import composite

    op, given = target.one(), calls.CallOptions(**call)
    inputs: list[Any] = []
    attrs = calls.attributes(op, given.attrs)
    if given.stated():
        inputs, attrs = calls.tensors(op, given)
    report = composite.diverge(
        op, *inputs, ways=ways, gradient=gradient, rtol=rtol, seed=seed, samples=samples, **attrs
    )
    click.echo(json.dumps(report.to_dict(), indent=1) if as_json else report)
    if report.divergence is not None:
        raise click.exceptions.Exit(failures.DIFFERS)
    if not report.ok:
        raise click.exceptions.Exit(failures.INPUT)
