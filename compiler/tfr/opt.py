"""Named passes over TFR as text: what `composite opt` runs.

Not for: the pipeline of the compiler (passes.py), which runs the same passes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from composite.compiler.tfr import dialect
from composite.compiler.tfr.bindings import ir, passmanager
from composite.compiler.tfr.canonicalize import canonicalize

_FILE_LINE_COLUMN = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_STDIN = "-"  # what MLIR calls a text that is no file


def run(text: str, file: str, passes: Sequence[str], *, locations: bool = False) -> str:
    """The text of a module after these passes, each of which leaves a valid module.

    Args:
        text: the module.
        file: what errors call the text.
        passes: names of PASSES, in order.
        locations: whether the result has the places of its ops.

    Raises:
        ValueError: the text is no valid module, or a pass is unknown. Each line of the message
            that names a place begins with file, line and column.
    """
    unknown = [name for name in passes if name not in PASSES]
    if unknown:
        raise ValueError(f"there is no pass {unknown[0]}: the passes are {', '.join(PASSES)}")
    with dialect.lock, dialect.context():
        try:
            module = ir.Module.parse(text, dialect.context())
            for name in passes:
                PASSES[name](module)
                module.operation.verify()
        except ir.MLIRError as error:
            raise ValueError("\n".join(_lines(error.error_diagnostics, file, "error"))) from error
        return str(module.operation.get_asm(enable_debug_info=locations))


def _of_mlir(name: str) -> Callable[[Any], None]:
    """A pass of MLIR's own."""

    def run_pass(module: Any) -> None:
        passmanager.PassManager.parse(f"builtin.module({name})").run(module.operation)

    return run_pass


PASSES: dict[str, Callable[[Any], None]] = {
    "canonicalize": canonicalize,
    **{name: _of_mlir(name) for name in ("cse", "symbol-dce", "strip-debuginfo")},
}


def _lines(diagnostics: Sequence[Any], file: str, kind: str) -> Iterator[str]:
    for one in diagnostics:
        yield f"{_place(one.location, file)}: {kind}: {one.message}"
        yield from _lines(one.notes, file, "note")


def _place(location: Any, file: str) -> str:
    """The first file, line and column of a location: of the text, or of an op's source."""
    found = _FILE_LINE_COLUMN.search(str(location))
    if found is None:
        return file
    named, line, column = found.groups()
    return f"{file if named == _STDIN else named}:{line}:{column}"
