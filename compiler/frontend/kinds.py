"""Which sequences are lists, as far as the ops that made them show it.

Not for: what a list and a tuple do differently; the expansion knows which of them a value is.
"""

from __future__ import annotations

from typing import Any

from composite.compiler.tfr import dialect

# Functions of Python that give a new list.
_LISTS = ("list", "sorted")


def is_list(value: Any) -> bool:
    """Say whether a value is certainly a list.

    A list input or attribute of the op is one; so is what a loop carries and starts as one.
    """
    if dialect.name_of(value) != "sequence":
        return False
    op = dialect.maker(value)
    if op is None:
        return _is_list_at_start(value)
    if op.name == "tfr.list":
        return "kind" not in op.attributes
    if op.name == "tfr.builtin":
        return op.attributes["function"].value in _LISTS
    if op.name == "tfr.binary":  # whatever is added to a list, the sum is one
        return any(map(is_list, op.operands))
    if op.name in ("tfr.subscript", "tfr.cast"):
        return is_list(op.operands[0])
    return False


def _is_list_at_start(argument: Any) -> bool:
    """Say whether an argument of a block is a list when the block is first entered."""
    owner = argument.owner.owner.operation
    if owner.name == "scf.while":
        return is_list(owner.operands[argument.arg_number])
    return owner.name == "func.func" and "arg_attrs" in owner.attributes
