"""From TIR functions to machine code, by TVM's code generator and LLVM."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from composite.compiler import account
from composite.compiler.tvm.target import Target


def objects(functions: Mapping[str, Any], target: Target) -> dict[str, bytes]:
    """Return the object files of a kernel by their names, under which linkers find them.

    The function of the kernel comes first, and then those that pack its constants. A constant is
    packed once, in vectors that wait for memory: to optimize that takes longer than it saves.
    """
    (name, kernel), *packers = functions.items()
    found = {f"{name}.o": _object({name: kernel}, target)}
    if packers:
        found[f"{name}_packers.o"] = _object(dict(packers), target, optimized=False)
    return found


@contextlib.contextmanager
def begun(functions: Mapping[str, Any], target: Target) -> Iterator[Callable[[], dict[str, bytes]]]:
    """Generate `objects` on another thread, and give a function that waits for them.

    LLVM runs without Python's lock. The context ends when it has ended.
    """
    with ThreadPoolExecutor(1, "generate") as pool:
        pending = pool.submit(objects, functions, target)

        def waited() -> dict[str, bytes]:
            with account.step("generate"):
                return pending.result()

        yield waited


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
    with open(os.memfd_create("kernel.o"), "rb") as file:
        module = generate(functions, target, optimized=optimized)
        module.write_to_file(f"/proc/self/fd/{file.fileno()}", "o")
        return file.read()
