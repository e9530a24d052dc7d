"""A built library that this process has loaded, as Python sees it.

Not for: loading one (composite.aot.loading).
"""

from __future__ import annotations

from pathlib import Path

from composite.ops.op import CompositeOp


class Library:
    """A loaded library: its ops are attributes, by their Python names."""

    def __init__(self, name: str, folder: Path, ops: dict[str, CompositeOp]) -> None:
        self.__name__ = name
        self.folder = folder
        self.ops = dict(ops)

    def __getattr__(self, name: str) -> CompositeOp:
        ops: dict[str, CompositeOp] = self.__dict__.get("ops", {})
        if name not in ops:
            known = ", ".join(ops) or "none"
            raise AttributeError(
                f"library {self.__dict__.get('__name__')} has no op {name!r}: {known}"
            )
        return ops[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.ops})

    def __repr__(self) -> str:
        return f"<composite library {self.__name__}: {', '.join(self.ops)}>"
