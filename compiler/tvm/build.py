"""From a TF function to an object file: read, plan, write the loops, generate code.

Linking is :mod:`.link`'s part. One call is one kernel; nothing is kept between calls.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import dims
from .constants import Constants, Packed
from .errors import NotCovered
from .plan import Plan, make_plan
from .reader import read_function
from .target import Target


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel, not yet linked.

    Attributes:
        name: Base of its C symbol ``__tvm_ffi_<name>``.
        objects: Object files by name.
        out_shapes: For each output its dimensions joined by commas, each in postfix tokens.
        minimums: For each symbol the least value that the kernel is right for.
        divisors: For each symbol a number that must divide it.
        strategy: Which strategies wrote its stages, in order.
        target: What it was compiled for.
        packed: What it takes after its outputs: constant factors, packed once by functions of
            their own, ``__tvm_ffi_<name>_pack<i>(input, packed)``.
    """

    name: str
    objects: dict[str, bytes] = field(repr=False)
    out_shapes: list[str]
    minimums: list[int]
    divisors: list[int]
    strategy: str
    target: Target
    packed: tuple[Packed, ...] = ()


def compile(  # noqa: A001 - named as re.compile is, and always used as backend.compile
    library_def: Any,
    in_shapes: Sequence[Sequence[int | str]],
    *,
    target: Target | None = None,
    name: str = "kernel",
    constants: Sequence[int] = (),
) -> Kernel:
    """Compile ``library_def.function[0]`` for a shape class.

    Args:
        library_def: A ``tensorflow.FunctionDefLibrary``; dtypes concrete, inputs flat.
        in_shapes: One shape an input; a dimension is an int or a symbol such as ``"s0"``.
        target: The machine; this one by default.
        name: A C identifier, unique among the kernels that are linked together.
        constants: Inputs whose elements are the same in every call, so that they may be packed
            once. They are inputs of the kernel all the same.

    Raises:
        NotCovered: If the op table, a dtype or a shape does not allow a kernel; or if there are
            constants and none would be packed: the kernel without constants is the same.
        ValueError: If the number of shapes is not the number of inputs.
    """
    if not name.isidentifier() or not name.isascii():
        raise ValueError(f"{name!r} is no C identifier")
    target = target or Target.host()
    try:
        plan = make_plan(read_function(library_def, in_shapes))
        module = make_module(plan, target, name, frozenset(constants))
    except RecursionError:
        raise NotCovered("a chain of element-wise ops is too long to be one kernel") from None
    if constants and not module.packed:
        raise NotCovered("its constants are read where they lie")
    symbols = dims.symbols_of(t.shape for t in plan.function.parameters)
    return Kernel(
        name=name,
        objects={f"{name}.o": _object(module.functions, target)},
        out_shapes=[dims.shape_text(t.shape) for t in plan.function.outputs],
        minimums=[plan.function.minimums.get(s, 0) for s in symbols],
        divisors=[1] * len(symbols),
        strategy="+".join(module.strategies),
        target=target,
        packed=tuple(module.packed),
    )


@dataclass(frozen=True)
class Module:
    """TIR functions by their symbols, the kernel first, and how it was made."""

    functions: dict[str, Any]
    strategies: list[str]
    packed: list[Packed]


def make_module(
    plan: Plan, target: Target, name: str, constants: frozenset[int] = frozenset()
) -> Module:
    """Return the TIR of a plan: the kernel, and what packs its constants."""
    known = Constants(constants)
    function, strategies = _kernel(plan, target, known)
    functions = {name: function}
    for i, write in enumerate(known.writers):
        functions[f"{name}_pack{i}"] = write()
    named = {
        symbol: f.with_attr({"global_symbol": symbol, "tirx.noalias": True})
        for symbol, f in functions.items()
    }
    return Module(named, strategies, known.packed)


def _kernel(plan: Plan, target: Target, constants: Constants) -> tuple[Any, list[str]]:
    """Return the TIR function of a plan, and the strategies that wrote its stages."""
    from tvm import tirx

    from .access import Space, Storage
    from .argument import declare_argument
    from .block import Block, symbol_vars
    from .strategy import choose
    from .strategy.base import Context

    block = Block()
    symbols = symbol_vars(dims.symbols_of(t.shape for t in plan.function.parameters))
    space = Space({}, symbols)
    context = Context(block, space, plan, target, constants)
    parameters = []
    for i, tensor in enumerate(plan.function.parameters):
        buffer, flat = declare_argument(block, space, tensor, f"in{i}")
        space.parameters[i] = Storage(flat, tensor.dtype)
        parameters.append(buffer)
    for i, (tensor, target_tensor) in enumerate(
        zip(plan.function.outputs, plan.outputs, strict=True)
    ):
        buffer, flat = declare_argument(block, space, tensor, f"out{i}")
        space.storages[target_tensor] = Storage(flat, tensor.dtype)
        parameters.append(buffer)
    strategies = []
    for stage in plan.stages:
        for tensor in stage.stores:
            if tensor not in space.storages:
                space.storages[tensor] = context.temporary(tensor)
        if 0 in stage.shape:
            continue  # nothing to compute
        strategy = choose(stage, context)
        strategies.append(strategy.name)
        strategy.emit(stage, context)
    return tirx.PrimFunc([*parameters, *constants.parameters], block.finish()), strategies


def lower(functions: dict[str, Any], target: Target) -> Any:
    """Return the module of TIR functions after TVM's passes, ready for code generation.

    The kernels are written in loops and vectors already: of TVM's pipeline only what turns that
    into calls of the host's ABI is run. Its simplifier must not be: it inlines what was bound to a
    variable, and takes floats for numbers of algebra (``(x + c) - c`` becomes ``x``).
    """
    import tvm
    from tvm import tirx

    described = tvm.target.Target(target.tvm())
    module = tvm.IRModule(functions)
    passes = [
        tirx.transform.BindTarget(described.with_host(described)),
        tirx.transform.FlattenBuffer(),
        tirx.transform.VerifyMemory(),
        tirx.transform.SplitHostDevice(),
        tirx.transform.MakePackedAPI(),
        tirx.transform.BF16StorageLegalize(),
        tirx.transform.LowerTVMBuiltin(),
        tirx.transform.LowerIntrin(),
    ]
    return tvm.ir.transform.Sequential(passes)(module)


def generate(functions: dict[str, Any], target: Target) -> Any:
    """Return TVM's runtime module that holds the machine code of TIR functions."""
    import tvm

    build = tvm.get_global_func("target.build.llvm")
    return build(lower(functions, target), tvm.target.Target(target.tvm()))


def _object(functions: dict[str, Any], target: Target) -> bytes:
    with tempfile.TemporaryDirectory(prefix="composite-") as folder:
        path = Path(folder) / "kernel.o"
        generate(functions, target).write_to_file(str(path), "o")
        return path.read_bytes()
