"""`composite show`: an op at a stage of its way from source to machine code."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import click

from composite.cli import calls, page

_TEXTS = ("source", "mlir", "program")
_CALLS = ("graph", "passes", "te", "schedule", "tir", "proof", "llvm", "asm")
_GPU = ("cuda", "ptx")
_GPU_LEVEL = "sm_80"


@click.command(short_help="Print a stage of an op, from source to machine code.")
@click.argument("target", type=calls.TargetType(), metavar="FILE[:OP]")
@click.option(
    "--stage",
    type=click.Choice([*_TEXTS, *_CALLS, *_GPU]),
    default="mlir",
    show_default=True,
    help="source, mlir and program are the op's; the others are a call's.",
)
@calls.options
@click.option(
    "level",
    "--target",
    metavar="LEVEL",
    help="CPU level of schedule, tir, proof, llvm and asm; "
    f"GPU level of cuda and ptx, {_GPU_LEVEL} if none.",
)
@click.option(
    "html",
    "--html",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page with the stages side by side, their lines linked.",
)
def show(
    target: calls.Target, stage: str, level: str | None, html: Path | None, **call: Any
) -> None:
    """Print a stage of an op: its source, what it is compiled to, or what a call becomes.

    \b
    Stages: source, mlir (the TFR module), program (what the runtime has), graph (the TensorFlow
    ops of a call), passes (those over its tensors), te (the kernel's tensors and loops), tir,
    proof (what is proven of them), llvm, asm; cuda and ptx are the kernel for a GPU.
    \b
    Example:
      composite show ops.py:dense --stage graph --shape x=batch,64 --shape w=32,64 --shape b=32

    \b
      composite show ops.py:dense --html dense.html --shape x=batch,64 --shape w=32,64 --shape b=32

    Shapes may be left out where the op states a call: CompositeOp.add_signature.
    """  # noqa: D301 - click's mark for lines that are not rewrapped
    op = target.one()
    if html is not None:
        html.write_text(_page(op, calls.CallOptions(**call), level), encoding="utf-8")
        return
    if stage in _TEXTS:
        click.echo(_text(op, stage).rstrip())
        return
    click.echo(_of_call(op, stage, calls.arguments(op, calls.CallOptions(**call)), level).rstrip())


def _text(op: Any, stage: str) -> str:
    if stage == "mlir":
        return str(op.mlir)
    if stage == "program":
        from google.protobuf import text_format

        return text_format.MessageToString(op.program)
    if not hasattr(op, "python_function"):
        raise ValueError(f"{op.__name__} comes from a built library, which holds no source")
    return inspect.getsource(op.python_function)


def _page(op: Any, given: calls.CallOptions, level: str | None) -> str:
    """All stages; without a stated call those of the op alone."""
    from composite.compiler import tvm as backend

    stages = {}
    if hasattr(op, "python_function"):
        file = op.place.rpartition(":")[0]
        first = inspect.getsourcelines(op.python_function)[1]
        stages["source"] = page.numbered(_text(op, "source"), file, first)
    stages["mlir"] = page.located(op.mlir)
    title = op.op_name
    if given.stated() or op.signatures or not op.schema.inputs:
        call = calls.arguments(op, given)
        title += f"({calls.plain_call(call)})"
        library, shapes = _expansion(op, call)
        stages["graph"] = _graph(library)
        try:
            stages["te"] = _plan(library, shapes)
            stages["tir"] = page.plain(_of_call(op, "tir", call, level))
            stages["asm"] = page.instructions(_of_call(op, "asm", call, level))
        except (backend.NotCovered, ValueError) as error:
            missing = next(stage for stage in ("te", "tir", "asm") if stage not in stages)
            stages[missing] = page.plain(f"there is no kernel for this call: {error}")
    return page.page(title, stages, op.place)


def _expansion(op: Any, call: dict[str, Any]) -> tuple[Any, Any]:
    """The expansion of a call, and its shapes with their symbols."""
    from composite.aot import stated_calls
    from composite.compiler.tvm.read.obstacles import with_sizes
    from composite.kernels.expansions import expand

    request = stated_calls.request(op, call)
    library = expand(request, request.in_shapes)
    return library, with_sizes(library, request.in_shapes)


def _of_call(op: Any, stage: str, call: dict[str, Any], level: str | None) -> str:
    import tensorflow as tf

    from composite.aot import build_options
    from composite.compiler import tvm as backend
    from composite.compiler.tvm.cuda.nvrtc import NvrtcError
    from composite.compiler.tvm.show import show as show_kernel
    from composite.compiler.tvm.show import show_gpu
    from composite.compiler.tvm.target import CudaTarget

    try:
        library, shapes = _expansion(op, call)
        if stage == "graph":
            return "\n".join(line.text for line in _graph(library))
        if stage in _GPU:
            allowed = tf.config.experimental.tensor_float_32_execution_enabled()
            gpu = CudaTarget.level(level or _GPU_LEVEL, tensor_float_32=allowed)
            return show_gpu(library, shapes.in_shapes, stage, gpu)
        target = build_options.build_targets([level] if level else [])[0].target
        return show_kernel(library, shapes.in_shapes, stage, target, shapes.sizes)
    except backend.NotCovered as answer:
        raise ValueError(f"there is no kernel for {op.__name__}: {answer}") from answer
    except NvrtcError as error:
        raise ValueError(str(error)) from error


def _plan(library: Any, shapes: Any) -> list[page.Line]:
    """The kernel's tensors; each comes from where the node is written that it is made for."""
    from composite.compiler.node_place import of_node
    from composite.compiler.tvm.show import show_plan

    lines = {n.name: page.place(of_node(n)) for n in library.function[0].node_def}
    return [page.Line(text, lines.get(node, "")) for text, node in show_plan(library, *shapes)]


def _graph(library: Any) -> list[page.Line]:
    """The functions of a FunctionDefLibrary, a line for each node."""
    import tensorflow as tf

    from composite.binding.records import python_value
    from composite.compiler.node_place import of_node

    lines = []
    for function in library.function:
        signature = function.signature
        inputs = ", ".join(f"{a.name}: {tf.as_dtype(a.type).name}" for a in signature.input_arg)
        lines.append(page.Line(f"{signature.name}({inputs}):"))
        for node in function.node_def:
            shown = _attributes(node, python_value)
            text = f"  {node.name} = {node.op}({', '.join(node.input)}){shown}"
            lines.append(page.Line(text, page.place(of_node(node))))
        results = ", ".join(function.ret[output.name] for output in signature.output_arg)
        lines += [page.Line(f"  return {results}"), page.Line("")]
    return lines


def _attributes(node: Any, python_value: Any) -> str:
    shown = []
    for name in sorted(node.attr):
        if name.startswith("_"):
            continue
        value = node.attr[name]
        if value.WhichOneof("value") in ("func", "tensor"):
            shown.append(f"{name}={_short(value)}")
        else:
            value = python_value(value)
            shown.append(f"{name}={getattr(value, 'name', value)}")
    return f"  {{{', '.join(shown)}}}" if shown else ""


def _short(value: Any) -> str:
    import tensorflow as tf

    if value.WhichOneof("value") == "func":
        return str(value.func.name)
    array = tf.make_ndarray(value.tensor)
    return str(array.tolist()) if array.size <= 8 else f"<{array.dtype}{list(array.shape)}>"
