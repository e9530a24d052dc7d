"""`composite machine`: what schedules know of a processor."""

from __future__ import annotations

import dataclasses
import json

import click


@click.command(short_help="Print what schedules know of a processor.")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
def machine(name: str | None, *, as_json: bool) -> None:
    """Print the facts on which the schedules of kernels depend: vectors, caches, costs of threads.

    \b
    Examples:
      composite machine
      composite machine zen4

    Without NAME they are those of the processor that kernels are made for in this environment
    (COMPOSITE_ISA, COMPOSITE_MACHINE). NAME is "host" for this processor, "level" for any one of
    its level of instructions, or a family. Sizes are in bytes, times in cycles.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    from composite.compiler.tvm.machine import host_level, machine_named
    from composite.compiler.tvm.target import Target

    target = Target.host()
    described = machine_named(name, host_level()) if name else target.machine
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(described), indent=2))
        return
    if not name:
        click.echo(f"level: {target.isa}\ncores: {target.cores}")
    click.echo(described)
