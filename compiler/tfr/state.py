"""Which ops a module calls, and whether it has state: a stateful call, or an Assert.

A `raise` under a condition that is a tensor becomes an Assert of TensorFlow.

Not for: `raise` on attributes and shapes, which ends the expansion.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from composite.compiler.tfr import dialect
from composite.compiler.tfr.bindings import ir


def calls(module: Any) -> Iterator[Any]:
    """Yield every tfr.call of a module, branches included, in the order of the text."""
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == "tfr.call":
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    yield from found


def is_stateful(module: Any) -> bool:
    """Say whether any op that the body can reach has state.

    A `raise` under a tensor condition is an Assert, which has state.
    """
    return any(op.attributes["stateful"].value for op in calls(module)) or _asserts(module)


def _asserts(module: Any) -> bool:
    """Say whether some tfr.raise is under a condition whose static type is a tensor."""
    raises: list[Any] = []
    calls: dict[str, list[Any]] = defaultdict(list)

    def visit(op: Any) -> Any:
        if op.name == "tfr.raise":
            raises.append(op)
        elif op.name == "func.call":
            calls[op.attributes["callee"].value].append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return any(_behind_tensor(op, calls) for op in raises)


def _behind_tensor(op: Any, calls: dict[str, list[Any]]) -> bool:
    """Say whether an op is under a tensor condition, here or where its function is called."""
    parent = op.parent
    while parent is not None and parent.name != "func.func":
        if _decides_by_tensor(parent):
            return True
        parent = parent.parent
    if parent is None:
        return False
    # A function is called only by the one before it, so this terminates.
    return any(
        _behind_tensor(call, calls) for call in calls.get(parent.attributes["sym_name"].value, ())
    )


def _decides_by_tensor(op: Any) -> bool:
    if op.name == "scf.if":
        truth = op.operands[0]
    elif op.name == "scf.while":
        *_, terminator = op.regions[0].blocks[0].operations
        truth = terminator.operands[0]
    else:
        return False
    made = dialect.producer(truth, "tfr.truth")
    value = None if made is None else made.operands[0]
    while value is not None and dialect.name_of(value) != "tensor":
        made = dialect.producer(value, "tfr.cast")
        value = None if made is None else made.operands[0]
    return value is not None
