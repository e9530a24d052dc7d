"""`composite opt`: passes over a file of TFR."""

from __future__ import annotations

from typing import TextIO

import click


@click.command(short_help="Run passes over a file of TFR, the IR of bodies, and print it.")
@click.argument("file", type=click.File("r", encoding="utf-8"))
@click.option(
    "passes",
    "--pass",
    multiple=True,
    metavar="NAME",
    help="A pass to run; may be given several times, and they run in that order. The passes are "
    "canonicalize, cse, symbol-dce and strip-debuginfo.",
)
@click.option("--locations", is_flag=True, help="Print the places of ops, too.")
@click.option(
    "-o",
    "--out",
    type=click.File("w", encoding="utf-8", lazy=True),
    default="-",
    help="The file to write; standard output if none.",
)
def opt(file: TextIO, passes: tuple[str, ...], *, locations: bool, out: TextIO) -> None:
    """Parse the TFR module in FILE, verify it, run passes over it, and print it.

    \b
    Examples:
      composite show ops.py:dense --stage mlir > dense.mlir
      composite opt dense.mlir --pass canonicalize --pass cse
      composite opt - < dense.mlir

    Without a pass the module is verified and printed. FILE is - for standard input. Errors begin
    with file, line and column: of FILE, or of the source that an op says it is from.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    from composite.compiler.tfr import opt as tfr_opt

    name = "<stdin>" if file.name == "-" else file.name
    out.write(tfr_opt.run(file.read(), name, passes, locations=locations))
