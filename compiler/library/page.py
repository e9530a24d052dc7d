"""The table of docs/language.md: which functions of TensorFlow a body may call beside its ops.

Not for: functions that are one generated op, which need no entry here.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterable

from composite.compiler.library.names import Entry


def table(entries: Iterable[Entry]) -> str:
    """Return the library as Markdown, a table for each subject, in the order of its file."""
    parts = []
    for module, group in itertools.groupby(entries, lambda entry: entry.function.__module__):
        rows = [f"| {module.rpartition('.')[2]} | arguments |", "|---|---|"]
        parts.append("\n".join([*rows, *map(_row, group)]))
    return "\n\n".join(parts)


def _row(entry: Entry) -> str:
    names = ", ".join(f"`{name}`" for name in entry.names)
    parameters = ", ".join(map(_parameter, inspect.signature(entry.function).parameters.values()))
    return f"| {names} | `{parameters}` |"


def _parameter(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return parameter.name
    # A dtype would be written as <dtype: 'float32'>.
    default = getattr(parameter.default, "name", None) or repr(parameter.default)
    return f"{parameter.name}={default}"
