"""Which sequences are lists, and which tensors NumPy arrays, as far as their ops show it.

Not for: what a list and a tuple do differently; the expansion knows which of them a value is.
"""

from __future__ import annotations

from typing import Any

from composite.compiler.tfr import dialect

# Functions of Python that give a new list, and those that give a text.
_LISTS = ("list", "sorted")
_TEXTS = ("str", "repr", "ascii", "format", "join")


def is_text(value: Any) -> bool:
    """Say whether a value is certainly a text, which a function of Python made, or a part of it."""
    op = dialect.maker(value)
    if op is None:
        return False
    if op.name == "tfr.builtin":
        return op.attributes["function"].value in _TEXTS
    return op.name == "tfr.binary" and any(map(is_text, op.operands))


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


def may_be_array(value: Any) -> bool:
    """Say whether a value of the static type tensor may be a NumPy array of the program."""
    op = dialect.maker(value)
    if op is None:
        return False
    if op.name == "tfr.constant":
        return True
    if op.name == "scf.if":
        place = list(op.results).index(value)
        blocks = [region.blocks[0] for region in op.regions]
        return any(may_be_array(list(block.operations)[-1].operands[place]) for block in blocks)
    if op.name in ("tfr.unary", "tfr.binary", "tfr.cast"):  # with a tensor it is one
        tensors = [one for one in op.operands if dialect.name_of(one) == "tensor"]
        return bool(tensors) and all(map(may_be_array, tensors))
    return False
