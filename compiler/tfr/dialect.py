"""The `tfr` dialect in a context: loading it, its types and attributes, state and extra verifiers.

tfr.irdl.mlir declares the ops, and MLIR checks them against it. What IRDL cannot say is here: which
ops may be merged and dropped, and the relation between the attributes and operands of tfr.call.

Not for: building ops (builder.py), rewriting them (canonicalize.py).
"""

from __future__ import annotations

import functools
import threading
from pathlib import Path
from typing import Any

from composite.compiler.tfr.bindings import ir, irdl

DECLARATION = Path(__file__).with_name("tfr.irdl.mlir")

# The order of the operand segments of tfr.call.
TYPES = ("tensor", "sequence", "dims", "attr", "any")

# The attribute that names the results of scf.if and scf.while as the source does.
NAMES = "tfr.names"

# Binary operators that Python has change a list in place: `+=` and `*=`.
IN_PLACE = ("iadd", "imul")

PURE_OPS = (
    "constant",
    "list",
    "item",
    "unpack",
    "unary",
    "compare",
    "truth",
    "cast",
    "shape",
    "rank",
    "dtype",
    "length",
    "builtin",
    "subscript",
)

# An MLIR context without worker threads must not be used by two threads at once.
lock = threading.RLock()


class _NoEffects(ir.MemoryEffectsOpInterface):
    """Equal ops may be merged, unused ones dropped."""

    @staticmethod
    def get_effects(op: Any, effects: Any) -> None:
        """Report nothing."""


class _CallEffects(ir.MemoryEffectsOpInterface):
    """A stateful call stays where it is, once for each time it is written."""

    @staticmethod
    def get_effects(op: Any, effects: Any) -> None:
        """Report a write if the called op has state."""
        if op.attributes["stateful"].value:
            effects.append(ir.MemoryEffect.Write)


class _BinaryEffects(ir.MemoryEffectsOpInterface):
    """What would change a list is an error, even where nothing reads the result."""

    @staticmethod
    def get_effects(op: Any, effects: Any) -> None:
        """Report a write for the operators that change a list in place."""
        if op.attributes["operator"].value in IN_PLACE:
            effects.append(ir.MemoryEffect.Write)


class _RaiseEffects(ir.MemoryEffectsOpInterface):
    """An error is never dropped."""

    @staticmethod
    def get_effects(_op: Any, effects: Any) -> None:
        """Report a write."""
        effects.append(ir.MemoryEffect.Write)


class _CallVerifier(ir.DynamicOpTrait):
    """`keywords` names each operand, each name once; the optional attributes are strings."""

    @staticmethod
    def verify_invariants(op: Any) -> bool:
        """Compare `keywords` with the operands."""
        attributes = op.attributes
        for optional in ("name", "program"):
            if optional in attributes and not isinstance(attributes[optional], ir.StringAttr):
                op.location.emit_error(f"'tfr.call' has an attribute {optional} that is no string")
                return False
        keywords = list(attributes["keywords"])
        if len(keywords) != len(op.operands):
            op.location.emit_error(
                f"'tfr.call' has {len(op.operands)} operands and {len(keywords)} keywords"
            )
            return False
        if len(set(keywords)) != len(keywords):
            op.location.emit_error(
                f"'tfr.call' names an operand twice: {', '.join(map(str, keywords))}"
            )
            return False
        return True


@functools.cache
def context() -> Any:
    """Return the context of all TFR modules of this process, with the dialect loaded."""
    with lock:
        loaded = ir.Context()
        # A body is too small for MLIR's thread pool to be of use.
        loaded.enable_multithreading(False)
        with loaded:
            irdl.load_dialects(ir.Module.parse(DECLARATION.read_text(encoding="utf-8")))
            for name in PURE_OPS:
                _NoEffects.attach(f"tfr.{name}")
            _BinaryEffects.attach("tfr.binary")
            _CallEffects.attach("tfr.call")
            _RaiseEffects.attach("tfr.raise")
            _CallVerifier.attach("tfr.call")
        return loaded


@functools.cache
def type_of(name: str) -> Any:
    """Return the dialect's type of that name, one of TYPES."""
    if name not in TYPES:
        raise ValueError(f"tfr has no type {name!r}; its types are {', '.join(TYPES)}")
    return ir.Type.parse(f"!tfr.{name}", context())


@functools.cache
def type_name(type_: Any) -> str:
    """Return the name of one of the dialect's types."""
    for name in TYPES:
        if type_ == type_of(name):
            return name
    raise ValueError(f"{type_} is no type of the tfr dialect")


def name_of(value: Any) -> str:
    """Return the name of the type of an SSA value: one of TYPES."""
    return type_name(value.type)


def maker(value: Any) -> Any | None:
    """Return the op that computes `value`, None if it is an argument of a block."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner


def producer(value: Any, op_name: str) -> Any | None:
    """Return the op that computes `value` if it is an `op_name`, else None."""
    op = maker(value)
    return op if op is not None and op.name == op_name else None
