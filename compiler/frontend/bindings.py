"""What a name of a body can be bound to while it is translated.

- a value of the IR (an MLIR SSA value);
- `Outputs`: the list that an op with several outputs gives, with the outputs' names;
- `Static`: an object known at compile time, which becomes a constant where a value is needed.

Not for: how expressions make them (expressions.py).
"""

from __future__ import annotations

import dataclasses
from typing import Any

from composite.compiler.frontend import capture
from composite.compiler.frontend.capture import Static
from composite.compiler.source import Source
from composite.compiler.tfr import Builder, NotConstantError, Place


@dataclasses.dataclass(frozen=True)
class Outputs:
    """The results of an op with several outputs; `types` are the names of their static types."""

    value: Any
    names: tuple[str, ...]
    types: tuple[str, ...]


@dataclasses.dataclass
class Translation:
    """What the passes that build share: the source, the builder, and the bindings at this point."""

    source: Source
    builder: Builder
    environment: dict[str, Any]

    def place(self, node: Any) -> Place:
        """Return the location of a node."""
        return Place(self.source.file, *self.source.position(node))

    def value(self, binding: Any, node: Any) -> Any:
        """Return a binding as a value of the IR, building a constant for a static object."""
        if isinstance(binding, Outputs):
            return binding.value
        if not isinstance(binding, Static):
            return binding
        if callable(binding.object) and not isinstance(binding.object, type):
            self.source.fail(
                node, f"`{binding.spelling}` is a function here: call it where it is needed"
            )
        try:
            return self._constant(capture.constant(binding.object))
        except NotConstantError as error:
            self.source.fail(node, f"`{binding.spelling}`: {error}")

    def _constant(self, value: object) -> Any:
        if isinstance(value, tuple):
            return self.builder.make_list([self._constant(element) for element in value])
        return self.builder.constant(value)
