"""The launches of an author's kernel for a GPU, as the author states them and in kernel records."""

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
        function: its name in the machine code; for a C++ function that is not `extern "C"`, the
            mangled name.
        grid: the number of blocks: a number, or an expression with + - * // % of numbers and the
            names of varying dims; or a tuple of up to three of these, x first.
        block: the number of threads in a block: a number, or a tuple of up to three, x first. For a
            Triton kernel it is 32 times its `num_warps`.
        arguments: the arguments of the function: the name of an input or output (passed as its
            address), the name of a varying dim or an int (an integer of 32 or 64 bits, as the
            function declares it), a float (32 bits), a numpy.float64 (64 bits). A 0 can also be a
            null pointer.
        shared: bytes of dynamic shared memory, besides what the function declares; for a Triton
            kernel `metadata.shared`.
    """

    function: str
    grid: Extent
    block: int | tuple[int, ...]
    arguments: tuple[Any, ...] = ()
    shared: int = 0


def fields(launches: Sequence[Launch], names: Mapping[str, str]) -> dict[str, tuple[Any, ...]]:
    """The launches as fields of a kernel record.

    Args:
        launches: the launches, in order.
        names: for the names of tensors and dims in a call, those in a record: "in0", "out0", "s0".

    Raises:
        ValueError: a launch is invalid; the message names the wrong part.
    """
    blocks = [_tuple(one, "block") for one in launches]
    return {
        "launch_functions": tuple(one.function for one in launches),
        "launch_work": ("1",) * len(launches),  # the grid depends on them
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
