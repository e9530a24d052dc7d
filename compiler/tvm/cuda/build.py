"""From a TF function to CUDA source and the plan of its launches.

Reading, lowering and planning are those of any device, and so are the passes but for one. One call
is one kernel, which may be several launches: one a stage. Machine code is :mod:`.nvrtc`'s part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from composite.compiler.tvm.choices import Choices, Chosen, Knob
from composite.compiler.tvm.cuda.launch import Argument, Launch, LaunchPlan
from composite.compiler.tvm.cuda.preamble import PREAMBLE
from composite.compiler.tvm.cuda.rules import register_rules
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.passes.pipeline import GPU_PASSES, run
from composite.compiler.tvm.plan.plan import Plan, make_plan
from composite.compiler.tvm.read.reader import read_function
from composite.compiler.tvm.target import CudaTarget

_DEVICE_FUNCTION = 2  # TVM's calling convention of what a launch runs


@dataclass(frozen=True)
class CudaKernel:
    """A kernel in CUDA.

    Attributes:
        name: What the names of its functions begin with.
        source: CUDA C++ that includes nothing.
        plan: Its launches.
        out_shapes: For each output its dimensions joined by commas, each in postfix tokens.
        minimums: For each symbol the least value that the kernel is right for.
        strategy: Which strategies wrote its stages, in order.
        target: What it was written for.
        knobs: What there was to choose.
    """

    name: str
    source: str
    plan: LaunchPlan
    out_shapes: list[str]
    minimums: list[int]
    strategy: str
    target: CudaTarget
    knobs: tuple[Knob, ...]


def write_cuda(  # noqa: PLR0913 - a call, a machine, what was chosen
    library_def: Any,
    in_shapes: Sequence[Sequence[int | str]],
    *,
    target: CudaTarget,
    name: str = "kernel",
    sizes: Sequence[int] = (),
    choices: Chosen = MappingProxyType({}),
) -> CudaKernel:
    """Write ``library_def.function[0]`` for a shape class as CUDA source.

    Args:
        library_def: A ``tensorflow.FunctionDefLibrary``; dtypes concrete, inputs flat.
        in_shapes: One shape an input; a dimension is an int or a symbol such as ``"s0"``.
        target: The level of the GPU.
        name: A C identifier.
        sizes: Inputs whose values are sizes, see `read_function`.
        choices: Values of knobs, where they are not to be the strategies' own.

    Raises:
        NotCovered: If the op table, a dtype or a shape does not allow a kernel, or no strategy for
            GPUs takes a stage.
    """
    try:
        plan = make_plan(run(GPU_PASSES, read_function(library_def, in_shapes, sizes)))
        return _Writing(plan, target, name, Choices(choices)).kernel()
    except RecursionError:
        raise NotCovered("a chain of element-wise ops is too long to be one kernel") from None


class _Writing:
    def __init__(self, plan: Plan, target: CudaTarget, name: str, choices: Choices) -> None:
        from composite.compiler.tvm.codegen.access import Space
        from composite.compiler.tvm.codegen.device_block import DeviceBlock
        from composite.compiler.tvm.tir.block import symbol_vars

        self._plan = plan
        self._target = target
        self._name = name
        self._choices = choices
        self._symbols = symbol_vars(dims.symbols_of(t.shape for t in plan.function.parameters))
        self._space = Space({}, self._symbols)
        self._block = DeviceBlock(self._workspace)
        self._arguments: dict[Argument, Any] = {}  # buffers
        self._data: dict[Argument, Any] = {}  # their addresses
        self._workspaces: list[str] = []

    def kernel(self) -> CudaKernel:
        strategies = self._write_stages()
        if self._block.checks:
            raise NotCovered("a check that may fail the call has no form on a GPU")
        launches, functions, aligned = [], {}, set()
        for number, region in enumerate(self._block.launches):
            symbol = f"{self._name}_{number}"
            arguments, function = self._function(region.body)
            # What other blocks write meanwhile is not the compiler's to keep in registers.
            attributes = {"global_symbol": symbol, "tirx.noalias": not region.resident}
            if region.beside:
                attributes["tirx.launch_bounds_min_blocks_per_sm"] = region.beside
            functions[symbol] = function.with_attr(attributes)
            launches.append(
                Launch(
                    symbol,
                    dims.postfix(region.work),
                    region.share,
                    region.threads,
                    region.shared,
                    arguments,
                    region.pool,
                    region.resident,
                )
            )
            aligned |= self._aligned(region.copied)
        order = [a for a in self._arguments if a in aligned]
        function = self._plan.function
        return CudaKernel(
            name=self._name,
            source=_source(functions, self._target) if functions else PREAMBLE,
            plan=LaunchPlan(tuple(launches), tuple(self._workspaces), tuple(order)),
            out_shapes=[dims.shape_text(t.shape) for t in function.outputs],
            minimums=[function.minimums.get(s, 0) for s in self._symbols],
            strategy="+".join(strategies),
            target=self._target,
            knobs=self._choices.knobs,
        )

    def _write_stages(self) -> list[str]:
        from composite.compiler.tvm.strategy import joined_stages, strategies_of
        from composite.compiler.tvm.strategy.context import Context

        listed = strategies_of(self._target.device)
        context = Context(
            self._block, self._space, self._plan, self._target, listed, choices=self._choices
        )
        for i, tensor in enumerate(self._plan.function.parameters):
            self._space.parameters[i] = self._storage(Argument("in", i), tensor, tensor.dtype)
        for i, (tensor, target) in enumerate(
            zip(self._plan.function.outputs, self._plan.outputs, strict=True)
        ):
            self._space.storages[target] = self._storage(Argument("out", i), tensor, tensor.dtype)
        strategies = []
        for number, stage in enumerate(joined_stages(context)):
            for tensor in stage.stores:
                if tensor not in self._space.storages:
                    self._space.storages[tensor] = context.temporary(tensor)
            if 0 in stage.shape:
                continue  # nothing to compute
            strategy, writer = replace(context, scope=f"{number}.").match(stage)
            strategies.append(strategy.name)
            writer.write()
        return strategies

    def _workspace(self, count: Dim, dtype: str) -> Any:
        """Return memory of the device for a number of elements."""
        argument = Argument("work", len(self._workspaces))
        self._workspaces.append(dims.postfix(count * ITEM_SIZE[dtype]))
        return self._buffer(argument, count, dtype)

    def _storage(self, argument: Argument, tensor: Tensor, dtype: str) -> Any:
        """Return where a tensor lies: at the address that an argument gives."""
        from composite.compiler.tvm.codegen.access import Storage
        from composite.compiler.tvm.math.numeric import storage_dtype

        count = dims.product(tensor.shape)
        return Storage(self._buffer(argument, count, storage_dtype(dtype)), dtype)

    def _buffer(self, argument: Argument, count: Dim, dtype: str) -> Any:
        from tvm import tirx
        from tvm.ir import PointerType, PrimType

        from composite.compiler.tvm.tir.block import index

        address = tirx.Var(str(argument), PointerType(PrimType(dtype), "global"))
        size = index(self._space.size(count))
        buffer = tirx.decl_buffer((size,), dtype, f"{argument}_flat", data=address)
        self._arguments[argument] = buffer
        self._data[argument] = address
        return buffer

    def _function(self, body: Any) -> tuple[tuple[Argument, ...], Any]:
        """Return the function of a launch and its arguments: what its body uses."""
        from tvm import tirx
        from tvm.tirx import stmt as tir_stmt

        free = {v.name for v in tirx.analysis.undefined_vars(body)}
        used = [a for a, buffer in self._arguments.items() if buffer.name in free]
        declared = [tir_stmt.DeclBuffer(self._arguments[a], data=self._data[a]) for a in used]
        whole = tir_stmt.SeqStmt([*declared, body])
        inner = {v.name for v in tirx.analysis.undefined_vars(whole)}
        sizes = [(i, v) for i, (s, v) in enumerate(self._symbols.items()) if s in inner]
        addresses = [self._data[a] for a in used]
        function = tirx.PrimFunc([*addresses, *(v for _, v in sizes)], whole)
        arguments = (*used, *(Argument("size", i) for i, _ in sizes))
        return arguments, function

    def _aligned(self, copied: Sequence[Any]) -> set[Argument]:
        names = {buffer.name for buffer in copied}
        return {
            a
            for a, buffer in self._arguments.items()
            if buffer.name in names and a.kind in ("in", "out")
        }


def _source(functions: dict[str, Any], target: CudaTarget) -> str:
    """Return the CUDA source of TIR functions, a launch each."""
    import tvm
    import tvm_ffi
    from tvm import tirx

    register_rules()
    described = tvm.target.Target(target.tvm())
    module = tvm.IRModule(
        {
            symbol: function.with_attr({"calling_conv": _DEVICE_FUNCTION, "target": described})
            for symbol, function in functions.items()
        }
    )
    module = tirx.transform.LowerIntrin()(module)
    name = "tvm_callback_cuda_compile"
    before = tvm.get_global_func(name, allow_missing=True)
    # TVM would compile at once, with --use_fast_math. It is given no code: the source is asked for.
    # Where its own runtime for GPUs is loaded (CUDA 13), this is called, and must return bytes.
    tvm_ffi.register_global_func(name, lambda *_: b"", override=True)
    try:
        made = tvm.get_global_func("target.build.cuda")(module, described)
    finally:
        if before is not None:
            tvm_ffi.register_global_func(name, before, override=True)
    text = str(made.inspect_source("cuda"))
    return PREAMBLE + "\n" + _plain(text[text.index('extern "C" __global__') :])


def _plain(text: str) -> str:
    """Return the source with arrays of one element, which hold values, as variables."""
    text = re.sub(r"^( *)alignas\(64\) (\w+) (\w+)_ptr\[1\];$", r"\1\2 \3;", text, flags=re.M)
    kept = {*re.findall(r"(\w+_ptr)\[\d+\];$", text, re.M)}
    return re.sub(
        r"\b(\w+)(_ptr)\[\(int64_t\)0\]",
        lambda use: use[0] if use[1] + use[2] in kept else use[1],
        text,
    )
