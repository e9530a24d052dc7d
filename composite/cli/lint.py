"""`composite lint`: what keeps the ops of a file from kernels."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import click

from composite.cli import calls, failures


@click.command(short_help="Say what keeps ops from kernels, and what to write instead.")
@click.argument("target", type=calls.TargetType(), metavar="FILE[:OP]")
@calls.options
@click.option(
    "--kinds",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    metavar="N",
    help="For each op without stated calls, look at N kinds of calls, as build finds them.",
)
@click.option("--strict", is_flag=True, help="The exit code is 1 for warnings, too.")
@click.option("as_json", "--json", is_flag=True, help="Print the report as JSON.")
def lint(target: calls.Target, kinds: int, *, strict: bool, as_json: bool, **call: Any) -> None:
    """Say for each op, dtype and gradient what keeps it from a kernel, where, and the remedy.

    \b
    Examples:
      composite lint ops.py
      composite lint ops.py:dense --shape x=batch,64 --shape w=32,64 --shape b=32

    Without shapes, the calls are those that are stated beside the op, in every dtype of the
    declaration, or else one of each kind. No code is generated and nothing is run. The exit code
    is 1 when a call, or its gradient, has no kernel.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    import composite

    given = calls.CallOptions(**call)
    stated = None
    if given.stated():
        stated = calls.arguments(target.one(), given)
    elif given.attrs:
        stated = calls.attributes(target.one(), given.attrs)
    report = composite.lint(target.ops(), stated, kinds=kinds)
    if as_json:
        answer = {
            "ok": report.ok,
            "findings": [dataclasses.asdict(finding) for finding in report.findings],
            "coverage": [dataclasses.asdict(one) for one in report.coverage],
        }
        click.echo(json.dumps(answer, indent=1))
    else:
        click.echo(report)
    if not report.ok or (strict and report.findings):
        raise click.exceptions.Exit(failures.INPUT)
