"""TFR as text: printing a module with its source locations, and reading it back.

Not for: the program that the runtime reads (serialize.py).
"""

from __future__ import annotations

from typing import Any

from composite.compiler.tfr import dialect
from composite.compiler.tfr.bindings import ir


def print_module(module: Any) -> str:
    """Return the text of a module, locations included: `parse` of it gives the same program."""
    with dialect.lock:
        return str(module.operation.get_asm(enable_debug_info=True))


def parse(text: str) -> Any:
    """Return the module that `text` is, verified.

    Raises:
        ValueError: if it is not valid; the message is MLIR's, with line and column of the text.
    """
    with dialect.lock:
        try:
            return ir.Module.parse(text, dialect.context())
        except ir.MLIRError as error:
            raise ValueError(f"this is not a valid TFR module: {error}") from error
