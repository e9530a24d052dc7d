"""The launches of an author's kernel for a GPU, as stated, and as kernel records have them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}
_MOST_DIMENSIONS = 3

Extent = int | str | tuple[int | str, ...]


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel for a GPU, for `use_kernel`.

        composite.Launch("scale", grid="(n + 255) // 256", block=256, arguments=("x", "y", "n"))

    Attributes:
        function: its name in the machine code: of a C++ function that is not `extern "C"`, the
            mangled one.
        grid: how many blocks: a number, or an expression of the names of dims that vary, of
            + - * // % and numbers; or a tuple of up to three of these, x first.
        block: how many threads in a block: a number, or up to three, x first; of a Triton kernel 32
            times its `num_warps`.
        arguments: what the function is passed: the name of an input or output (its address), the
            name of a dim that varies (an integer of 32 or 64 bits, as the function declares it), an
            int (the same), a float (of 32 bits), a numpy.float64 (of 64). A 0 is a null pointer,
            too.
        shared: bytes of shared memory that the function is given beside what it declares; of a
            Triton kernel `metadata.shared`.
    """

    function: str
    grid: Extent
    block: int | tuple[int, ...]
    arguments: tuple[Any, ...] = ()
    shared: int = 0


def fields(launches: Sequence[Launch], names: Mapping[str, str]) -> dict[str, tuple[Any, ...]]:
    """The launches by the names of a kernel record's fields.

    Args:
        launches: in their order.
        names: what tensors and dims are called in a call, and in a record: "in0", "out0", "s0".

    Raises:
        ValueError: a launch is none, with the part that is wrong.
    """
    blocks = [_tuple(one, "block") for one in launches]
    return {
        "launch_functions": tuple(one.function for one in launches),
        "launch_work": ("1",) * len(launches),  # the grid says how many blocks there are
        "launch_share": (1,) * len(launches),
        "launch_threads": tuple(int(np.prod(block)) for block in blocks),
        "launch_shared": (0,) * len(launches),
        "launch_arguments": tuple(
            " ".join(_argument(one, given, names) for given in one.arguments) for one in launches
        ),
        "launch_grid": tuple(
            ",".join(_postfix(one, size, names) for size in _tuple(one, "grid")) for one in launches
        ),
        "launch_block": tuple(",".join(map(str, block)) for block in blocks),
        "launch_dynamic": tuple(one.shared for one in launches),
    }


def _tuple(launch: Launch, part: str) -> tuple[Any, ...]:
    given = getattr(launch, part)
    sizes = given if isinstance(given, tuple) else (given,)
    kinds = (int,) if part == "block" else (int, str)
    if not 0 < len(sizes) <= _MOST_DIMENSIONS or not all(isinstance(one, kinds) for one in sizes):
        raise ValueError(f"the {part} of {launch.function} is {given!r}: give one to three sizes")
    return sizes


def _argument(launch: Launch, given: Any, names: Mapping[str, str]) -> str:
    if isinstance(given, str) and given in names:
        name = names[given]
        return f"size{name.removeprefix('s')}" if name.startswith("s") else name
    if isinstance(given, np.float64):  # a float, too
        return f"double={float(given)!r}"
    if isinstance(given, float):
        return f"float={given!r}"
    if isinstance(given, (int, np.integer)):
        return f"int={int(given)}"
    raise ValueError(
        f"{launch.function} is to be passed {given!r}, which is none of {', '.join(names)} and no "
        "number"
    )


def _postfix(launch: Launch, size: int | str, names: Mapping[str, str]) -> str:
    def text(node: ast.expr) -> str:
        match node:
            case ast.Constant(int(number)):
                return str(number)
            case ast.Name(name) if names.get(name, "").startswith("s"):
                return names[name]
            case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
                return f"{text(left)} {text(right)} {_OPERATORS[type(operator)]}"
        raise ValueError(
            f"the grid of {launch.function} is {size!r}: {ast.unparse(node)} is no number, no dim "
            "that varies, and none of + - * // %"
        )

    try:
        parsed = ast.parse(str(size), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"the grid of {launch.function} is {size!r}: {error.msg}") from error
    return text(parsed.body)
