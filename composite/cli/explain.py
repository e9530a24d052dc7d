"""`composite explain`: which path a call takes, and why."""

from __future__ import annotations

import json
from typing import Any

import click

from composite.cli import calls


@click.command(short_help="Say which path a call takes, and why.")
@click.argument("target", type=calls.TargetType(), metavar="FILE[:OP]")
@calls.options
@calls.device
@click.option(
    "--no-run", is_flag=True, help="Do not make the call: say what it would do in a new process."
)
@click.option("as_json", "--json", is_flag=True, help="Print it as JSON.")
def explain(
    target: calls.Target, *, device: str | None, no_run: bool, as_json: bool, **call: Any
) -> None:
    """Say whether a call runs a kernel or TensorFlow's ops, why, and what was measured.

    \b
    Example:
      composite explain ops.py:dense --shape x=32,1024 --shape w=1024,1024 --shape b=1024

    The call is made once, with random numbers, and its kernel is compiled and measured.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    import composite

    op = target.one()
    with calls.placed(device):
        inputs, attrs = calls.tensors(op, calls.CallOptions(**call))
        if not no_run:
            op(*inputs, **attrs)
            composite.wait()
        said = composite.explain(op, *inputs, **attrs)
    facts = {
        "op": said.op_name,
        "path": said.path,
        "reason": said.reason,
        "kernel": said.kernel,
        "kernel_us": said.kernel_us,
        "expansion_us": said.expansion_us,
        "measured": [point._asdict() for point in said.measured],
        "error": said.error,
        "error_unit": said.error_unit,
        "algebra": said.algebra,
        "gradient": said.gradient,
        **said.details,
    }
    if as_json:
        click.echo(json.dumps(facts, indent=1, default=str))
        return
    for name, value in facts.items():
        if value not in (None, ""):
            shown = f"{value:.3g}" if isinstance(value, float) else value
            click.echo(f"{name.replace('_', ' '):14}{shown}")
