"""The documentation of a built library, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from composite.compiler.declared_text import written
from composite.compiler.emit.library import LibraryKernel, LibraryOp
from composite.compiler.emit.literals import literal, parameter, type_text


def docs(name: str, ops: Sequence[LibraryOp], kernels: Sequence[LibraryKernel]) -> str:
    """The text of <name>.md."""
    parts = [
        f"# {name}",
        f"Op library for TensorFlow. `import {name}`, or `composite.load` of this folder.",
    ]
    for op in ops:
        parts += _op(op, [k for k in kernels if k.op_name == op.op_name])
    return "\n\n".join(parts) + "\n"


def _op(op: LibraryOp, kernels: Sequence[LibraryKernel]) -> list[str]:
    schema = op.schema
    parameters = [arg.name for arg in schema.inputs]
    if schema.attrs:
        parameters += ["*", *map(parameter, schema.attrs)]
    parts = [f"## {op.python_name}", f"```python\n{op.python_name}({', '.join(parameters)})\n```"]
    if op.doc:
        parts.append(op.doc.strip())
    parts.append(f"Node `{op.op_name}`, program `{op.digest}`.")
    if op.composes:
        runs = "and runs in its place" if op.replaces else "which keeps its own kernels"
        parts.append(f"A composition of TensorFlow's `{op.composes}`, {runs}.")
    if op.own_gradient:
        parts.append("Its gradient is the author's own and is not part of this library.")
    parts.append(_table(["", "name", "type"], _arguments(op)))
    if kernels:
        columns = ["kernel", *kernels[0].facts]
        rows = [[f"`{k.name}`", *(f"{v}" for v in k.facts.values())] for k in kernels]
        parts.append(_table(columns, rows))
    return parts


def _arguments(op: LibraryOp) -> list[list[str]]:
    schema = op.schema
    rows = [["input", f"`{arg.name}`", f"`{type_text(arg)}`"] for arg in schema.inputs]
    for attr in schema.attrs:
        kind = f"`{attr.type}`"
        if attr.allowed:
            kind += " of " + ", ".join(f"`{literal(v)}`" for v in attr.allowed)
        if attr.has_default:
            kind += f", default `{literal(written(attr))}`"
        rows.append(["attribute", f"`{attr.name}`", kind])
    for attr in schema.derived:
        allowed = ", ".join(f"`{getattr(v, 'name', v)}`" for v in attr.allowed)
        rows.append(
            ["derived", f"`{attr.name}`", f"`{attr.type}`" + (f" of {allowed}" if allowed else "")]
        )
    rows += [["output", f"`{arg.name}`", f"`{type_text(arg)}`"] for arg in schema.outputs]
    return rows


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped)
