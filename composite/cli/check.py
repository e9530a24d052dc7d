"""`composite check`: an op beside its Python function."""

from __future__ import annotations

import json
from typing import Any

import click

from composite.cli import calls, failures


@click.command(short_help="Compare ops with their Python functions.")
@click.argument("target", type=calls.TargetType(), metavar="FILE[:OP]")
@calls.options
@click.option(
    "ways",
    "--way",
    multiple=True,
    metavar="WAY",
    help="Only this way of running the op, as the report names it; several times.",
)
@click.option("--samples", type=click.IntRange(min=1), help="How many calls; see docs/checking.md.")
@click.option("--seed", default=0, show_default=True, help="Of the inputs that are drawn.")
@click.option(
    "--report-dir",
    default=".composite",
    show_default=True,
    help="The folder below which a difference is saved.",
)
@click.option("as_json", "--json", is_flag=True, help="Print the reports as JSON.")
def check(  # noqa: PLR0913 - one parameter an option
    target: calls.Target,
    ways: tuple[str, ...],
    samples: int | None,
    seed: int,
    report_dir: str,
    *,
    as_json: bool,
    **call: Any,
) -> None:
    """Compare an op, or all ops of a file, with the Python functions, in every way they can run.

    \b
    Examples:
      composite check ops.py
      composite check ops.py:dense --shape x=4,8 --shape w=3,8 --shape b=3 --attr act=RELU

    Without shapes, inputs are drawn. The exit code is 3 when an op differs,
    or raises in every call.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    import composite
    from composite.progress.event import ignored

    given = calls.CallOptions(**call)
    reports = []
    for op in target.ops():
        inputs: list[Any] = []
        attrs = calls.attributes(op, given.attrs)
        if given.stated():
            inputs, attrs = calls.tensors(op, given)
        report = composite.check(
            op, *inputs, seed=seed, samples=samples, ways=ways or None, report_dir=report_dir,
            raise_on_failure=False, progress=ignored if as_json else None, **attrs,
        )  # fmt: skip
        reports.append(report)
        if not as_json:
            click.echo(f"{report}\n" if report.ok else f"{report}\n\n{report.failure}\n")
    if as_json:
        click.echo(json.dumps([_plain(report) for report in reports], indent=1))
    if not all(report.ok for report in reports):
        raise click.exceptions.Exit(failures.DIFFERS)


def _plain(report: Any) -> dict[str, Any]:
    rows = [
        {"way": r.way, "samples": r.samples, "error": r.error, "bound": r.bound, "note": r.note}
        for r in report.rows
    ]
    return {
        "op": report.op_name,
        "ok": report.ok,
        "ways": rows,
        "difference": str(report.difference) if report.difference is not None else None,
        "failure": report.failure or None,
    }
