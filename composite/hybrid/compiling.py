"""`composite.hybrid.compile`: a whole model as a module of TVM's Relax VM."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from composite.acceleration.accelerate import entries
from composite.binding import settings
from composite.compiler.tvm import Target
from composite.editing.models import concrete_of
from composite.hybrid import regions, stages
from composite.hybrid.emitting import Emitter
from composite.hybrid.freezing import freeze
from composite.hybrid.module import HybridModule, opened
from composite.hybrid.report import HybridReport, Part
from composite.hybrid.structure import Description, indices
from composite.saving.model_loading import load_model
from composite.trials import drawing, results

_WORD = "composite.hybrid.compile"


def compile(  # noqa: A001 - named as tvm.compile is
    model: Any,
    *inputs: Any,
    signature: str = "serving_default",
    deny: Sequence[str] = (),
    min_ops: int = 2,
    rtol: float | None = None,
) -> HybridModule:
    """Compiles a whole model to a module of TVM's Relax VM, which calls TensorFlow where it must.

    The regions that `composite.accelerate` forms become kernels of TVM; what lies between is as few
    functions of TensorFlow as the order of the nodes allows, which the module calls by TVM's global
    function `composite.hybrid.call_tf`. The module holds the kernels, the graphs of these
    functions, and what the model's variables and lookup tables hold at this time.

    Args:
        model: a Keras model, which is called for inference; a tf.function or a Python function; a
            trace of one (a ConcreteFunction); or the folder of a SavedModel.
        *inputs: of a function without an input signature, the arguments of a call or
            tf.TensorSpecs of them: a dim that is None in a spec may be any size. They are what the
            results are compared with; where there are no values, floats of [0, 1) and integers 0
            and 1 are drawn.
        signature: of a SavedModel, which one.
        deny: what TensorFlow runs in any case, as `composite.accelerate` takes it.
        min_ops: how many ops that compute a kernel has at least.
        rtol: how far results may be from the model's, as for `composite.accelerate`.

    Returns:
        A HybridModule, which is called as the model is.

    Raises:
        TypeError: if `model` is none of these, or a function comes without inputs.
        ValueError: the model writes into a variable or a table, or keeps state that is neither, or
            takes or returns tensors that are sparse or ragged; its results differ from the
            module's; or an argument is not known.
        FileNotFoundError: if the folder has no SavedModel.
    """
    name, concrete, given, owner = _traced(model, inputs, signature)
    frozen = freeze(concrete, name)
    taken = indices(concrete.structured_input_signature, tf.TensorSpec)
    returned = indices(concrete.structured_outputs, (tf.Tensor, tf.TensorSpec))
    if (_count(taken), _count(returned)) != (len(frozen.inputs), len(concrete.outputs)):
        raise ValueError(
            f"{name} takes or returns sparse or ragged tensors: have it take and return their parts"
        )
    partition = regions.partition(frozen, entries(deny, min_ops))
    emitter = Emitter(partition)
    parts = _parts(partition)
    report = HybridReport(name, parts, partition.refused, frozen.left_out, frozen.kept)
    described = Description(
        name=name,
        inputs=taken,
        outputs=returned,
        specs=tuple((s.dtype.name, _sizes(s.shape)) for s in frozen.inputs),
        isa=Target.host().isa if report.kernels else "",
        kernels=report.kernels,
        calls=report.calls,
        ir=emitter.main(),
    )
    executable = _built(emitter.module(described.to_json()))
    module = HybridModule(opened(executable), executable, report)
    module.report = _compared(module, report, concrete, given, rtol)
    del owner  # whose variables the trace reads
    return module


def _traced(model: Any, inputs: Sequence[Any], signature: str) -> tuple[str, Any, list[Any], Any]:
    """What people call the model, its trace, the inputs of a call, and what keeps its variables."""
    if isinstance(model, str | os.PathLike):
        loaded = load_model(model)
        if signature not in loaded.signatures:
            has = ", ".join(sorted(loaded.signatures)) or "none"
            raise ValueError(f"the model has no signature {signature}; it has {has}")
        return signature, loaded.signatures[signature], list(inputs), loaded
    name = str(getattr(model, "name", None) or getattr(model, "__name__", "function"))
    if isinstance(model, tf.keras.Model) or hasattr(model, "function_def"):
        return name, concrete_of(model, _WORD), list(inputs), model
    if not callable(model):
        raise TypeError(f"{_WORD} takes a model or a function, not {model!r}")
    if not inputs and getattr(model, "input_signature", None) is None:
        raise TypeError(
            f"{_WORD} needs the inputs of one call of {name}, or tf.TensorSpecs of them"
        )
    function = model if hasattr(model, "get_concrete_function") else tf.function(model)
    is_open = any(isinstance(x, tf.TensorSpec) for x in tf.nest.flatten(list(inputs)))
    return name, function.get_concrete_function(*inputs), [] if is_open else list(inputs), model


def _count(places: Any) -> int:
    return sum(place is not None for place in tf.nest.flatten(places))


def _sizes(shape: tf.TensorShape) -> tuple[int | None, ...] | None:
    return None if shape.rank is None else tuple(shape.as_list())


def _built(module: Any) -> Any:
    """The executable of an IRModule."""
    import tvm

    return tvm.relax.build(module, target=tvm.target.Target(Target.host().tvm()))


def _parts(partition: regions.Partition) -> tuple[Part, ...]:
    graph, found = partition.graph, []
    functions = {f.signature.name: f for f in graph.library}
    for number, stage in enumerate(stages.stages(graph)):
        if stage.calls:
            found.append(
                Part(number, "TensorFlow", Counter(graph.nodes[n].op for n in stage.calls))
            )
        for name in stage.regions:
            region = graph.region(name)
            ops = Counter(node.op for node in functions[region].node_def)
            kernel = partition.kernels[name].kernel
            found.append(Part(number, "kernel", ops, region, kernel.strategy))
    return tuple(found)


def _compared(
    module: HybridModule,
    report: HybridReport,
    concrete: Any,
    given: Sequence[Any],
    rtol: float | None,
) -> HybridReport:
    """The report, with how far the module's results are. ValueError if that is too far."""
    args, kwargs = concrete.structured_input_signature
    if given:
        is_named = not args and len(given) == 1 and isinstance(given[0], dict)
        args, kwargs = ((), given[0]) if is_named else (tuple(given), {})
    else:
        try:
            args, kwargs = _drawn((args, kwargs))
        except ValueError as error:
            return replace(report, uncompared=str(error))
    with settings.options(regions=False):
        wanted = results.flat(concrete(*args, **kwargs))
    found = results.flat(module(*args, **kwargs))
    moved = results.deviation(found, wanted, rtol)
    if not moved.is_small:
        raise ValueError(
            f"output {moved.output} of the module is {moved.distance:.2g} of its largest |y| away "
            f"from the model's, {moved.bound:.2g} is allowed: state rtol=, or find the region by "
            f"deny=\n{report}"
        )
    return replace(report, deviation=moved)


def _drawn(structure: Any) -> Any:
    """Inputs for all specs in a structure; what is no spec stays."""
    return tf.nest.map_structure(
        lambda x: drawing.drawn(x) if isinstance(x, tf.TensorSpec) else x, structure
    )
