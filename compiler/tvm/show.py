"""The stages between a TF function and machine code, as texts for people.

The same steps as in :mod:`.build`, up to the one that is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from composite.compiler.tvm.build import make_module
from composite.compiler.tvm.cuda import nvrtc
from composite.compiler.tvm.cuda.build import write_cuda
from composite.compiler.tvm.cuda.launch import ALIGNMENT
from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.tensor import Constant, Parameter, Tensor
from composite.compiler.tvm.ir.walk import topological
from composite.compiler.tvm.machine_code import generate
from composite.compiler.tvm.passes.pipeline import PIPELINE
from composite.compiler.tvm.plan.plan import Plan, make_plan
from composite.compiler.tvm.proof import Proof, prove
from composite.compiler.tvm.read.reader import read_function
from composite.compiler.tvm.schedule import Schedule
from composite.compiler.tvm.target import CudaTarget, Target

STAGES = ("passes", "te", "schedule", "tir", "proof", "llvm", "asm")
GPU_STAGES = ("cuda", "ptx")


def show(
    library_def: Any,
    in_shapes: Sequence[Sequence[int | str]],
    stage: str,
    target: Target,
    sizes: Sequence[int] = (),
) -> str:
    """Return a stage of compiling ``library_def.function[0]``: one of ``STAGES``.

    `sizes`: the inputs whose values are sizes, see `read_function`.

    Raises NotCovered as compiling does, ValueError for another stage.
    """
    if stage not in STAGES:
        raise ValueError(f"{stage!r} is none of {', '.join(STAGES)}")
    plan = make_plan(read_function(library_def, in_shapes, sizes))
    if stage == "passes":
        return passes_text()
    if stage == "te":
        return plan_text(plan)
    module = make_module(plan, target, "kernel")
    if stage == "schedule":
        return schedule_text(module.schedule, target)
    if stage == "tir":
        function = module.functions["kernel"]
        return f"# strategies: {' + '.join(module.strategies.values())}\n{function.script()}\n"
    if stage == "proof":
        return proof_text(prove(module.functions, plan.function.minimums))
    source = generate(module.functions, target).inspect_source("ll" if stage == "llvm" else "asm")
    return str(source)


def show_gpu(
    library_def: Any, in_shapes: Sequence[Sequence[int | str]], stage: str, target: CudaTarget
) -> str:
    """Return the CUDA source of ``library_def.function[0]``, its launches first, or the PTX of it.

    Raises NotCovered where there is no kernel for a GPU, NvrtcError for "ptx" without NVRTC,
    ValueError for another stage.
    """
    if stage not in GPU_STAGES:
        raise ValueError(f"{stage!r} is none of {', '.join(GPU_STAGES)}")
    kernel = write_cuda(library_def, in_shapes, target=target)
    if stage == "ptx":
        return nvrtc.ptx(kernel.source, target.isa, is_portable=target.is_portable)
    lines = [f"// strategies: {kernel.strategy.replace('+', ' + ')}"]
    for launch in kernel.plan.launches:
        work = f"[{launch.work}] / {launch.share} blocks of {launch.threads} threads"
        arguments = ", ".join(map(str, launch.arguments))
        shared = f"{launch.shared + launch.dynamic} bytes shared"
        together = ", that wait for each other" * launch.resident
        lines.append(f"// {launch.function}({arguments}): {work}{together}, {shared}")
    lines += [f"// work{i}: [{size}] bytes" for i, size in enumerate(kernel.plan.workspaces)]
    if kernel.plan.aligned:
        lines.append(f"// multiples of {ALIGNMENT}: {', '.join(map(str, kernel.plan.aligned))}")
    return "\n".join([*lines, "", kernel.source])


def schedule_text(schedule: Schedule, target: Target) -> str:
    """Return what a schedule was made for, and a line for each stage."""
    machine = f"# {target.machine.name}, {target.isa}, {target.cores} cores"
    return f"{machine}\n{schedule}\n"


def proof_text(proof: Proof) -> str:
    """Return what is proven, and a line for each access that is not."""
    lines = [f"{proof.accesses} accesses: {proof}" if proof.is_complete else "not proven:"]
    if proof.overlaps:
        lines.append(f"{proof.overlaps} stores of vectors moved back may overlap another task's")
    return "".join(f"{line}\n" for line in [*lines, *map(str, proof.unproven)])


def passes_text() -> str:
    """Return the names of the passes over the tensor graph, a line each, with what they do."""
    width = max(len(one.name) for one in PIPELINE)
    return "".join(f"{one.name:{width}}  {one.summary}\n" for one in PIPELINE)


def show_plan(
    library_def: Any, in_shapes: Sequence[Sequence[int | str]], sizes: Sequence[int] = ()
) -> list[PlanLine]:
    """Return the lines of the stage "te", and the nodes of function[0] that they come from."""
    return plan_lines(make_plan(read_function(library_def, in_shapes, sizes)))


class PlanLine(NamedTuple):
    """A line of the stage "te", and the name of the TF node that its tensor is made for, or ""."""

    text: str
    node: str = ""


def plan_text(plan: Plan) -> str:
    """Return the tensors of each stage, a line each: shape, dtype, and what it is computed from."""
    return "\n".join(line.text for line in plan_lines(plan)) + "\n"


def plan_lines(plan: Plan) -> list[PlanLine]:
    """Return the lines of `plan_text`."""
    names: dict[Tensor, str] = {}
    lines: list[PlanLine] = []
    for tensor in topological(plan.outputs):
        names[tensor] = f"t{len(names)}"
    for i, parameter in enumerate(plan.function.parameters):
        names[parameter] = f"in{i}"
        lines.append(PlanLine(f"in{i}: {_type(parameter)}"))
    shown = set(plan.function.parameters)
    for number, stage in enumerate(plan.stages):
        anchor = "" if stage.anchor is None else f", around {names[stage.anchor]}"
        stores = ", ".join(names[t] for t in stage.stores)
        title = f"stage {number}: loops over [{_shape(stage.shape)}]{anchor}; stores {stores}"
        lines += [PlanLine(""), PlanLine(title)]
        wanted = [*([] if stage.anchor is None else [stage.anchor]), *stage.stores]
        for tensor in topological(tuple(wanted)):
            if tensor not in shown:
                shown.add(tensor)
                stored = "  # stored" if tensor in plan.stored else ""
                text = f"  {names[tensor]}: {_type(tensor)} = {_node(tensor, names)}{stored}"
                lines.append(PlanLine(text, plan.function.origins.get(tensor, "")))
    results = ", ".join(names[t] for t in plan.outputs)
    return [*lines, PlanLine(""), PlanLine(f"returns {results}")]


def _type(tensor: Tensor) -> str:
    return f"{tensor.dtype}[{_shape(tensor.shape)}]"


def _shape(shape: Any) -> str:
    return dims.shape_text(shape)


def _node(tensor: Tensor, names: dict[Tensor, str]) -> str:
    if isinstance(tensor.node, Parameter):
        return names[tensor]
    if isinstance(tensor.node, Constant):
        return tensor.node.title
    return f"{tensor.node.title}({', '.join(names[t] for t in tensor.node.operands)})"
