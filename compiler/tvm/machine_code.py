"""From TIR functions to machine code, by TVM's code generator and LLVM."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from composite.compiler import account
from composite.compiler.tvm.target import Target


def objects(name: str, builds: Sequence[Mapping[str, Any]], target: Target) -> dict[str, bytes]:
    """Return the object files of a kernel by their names, under which linkers find them.

    Each build has the function of the kernel first, and then those that pack its constants. A
    constant is packed once, in vectors that wait for memory: to optimize that takes longer than it
    saves.
    """
    kernels: dict[str, Any] = {}
    packers: dict[str, Any] = {}
    for (symbol, kernel), *others in (functions.items() for functions in builds):
        kernels[symbol] = kernel
        packers |= dict(others)
    found = {f"{name}.o": _object(kernels, target)}
    if packers:
        found[f"{name}_packers.o"] = _object(packers, target, optimized=False)
    return found


def lower(functions: Mapping[str, Any], target: Target, *, optimized: bool = True) -> Any:
    """Return the module of TIR functions after TVM's passes, ready for code generation.

    The kernels are written in loops and vectors already: of TVM's pipeline only what turns that
    into calls of the host's ABI is run. Its simplifier must not be: it inlines what was bound to a
    variable, and takes floats for numbers of algebra (``(x + c) - c`` becomes ``x``). Nor is
    FlattenBuffer: all buffers are flat, and it takes a third of the time to write each vector's
    place in a way that the code generator no longer knows for a vector's.
    """
    import tvm
    from tvm import tirx

    from composite.compiler.tvm.codegen.entry import entry

    described = _described(target, optimized=optimized)
    module = tvm.IRModule(
        {name: entry(f).with_attr("target", described) for name, f in functions.items()}
    )
    passes = [
        tirx.transform.BF16StorageLegalize(),
        tirx.transform.LowerTVMBuiltin(),
        tirx.transform.LowerIntrin(),
    ]
    return tvm.ir.transform.Sequential(passes)(module)


def generate(functions: Mapping[str, Any], target: Target, *, optimized: bool = True) -> Any:
    """Return TVM's runtime module that holds the machine code of TIR functions."""
    import tvm

    build = tvm.get_global_func("target.build.llvm")
    module = lower(functions, target, optimized=optimized)
    return build(module, _described(target, optimized=optimized))


def _described(target: Target, *, optimized: bool) -> Any:
    """Return TVM's target."""
    import tvm

    return tvm.target.Target(target.tvm() | ({} if optimized else {"opt-level": 0}))


def _object(functions: Mapping[str, Any], target: Target, *, optimized: bool = True) -> bytes:
    # LLVM ends the process when a file cannot be written; memory has no folder that may be full.
    with account.step("generate"), open(os.memfd_create("kernel.o"), "rb") as file:
        module = generate(functions, target, optimized=optimized)
        module.write_to_file(f"/proc/self/fd/{file.fileno()}", "o")
        return file.read()
