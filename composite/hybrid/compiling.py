"""`composite.hybrid.compile`: a whole model as a module of TVM's Relax VM."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from composite.acceleration.accelerate import entries
from composite.binding import settings
from composite.compiler.tvm import Target
from composite.editing.models import concrete_of
from composite.hybrid import regions, stages
from composite.hybrid.emitting import Emitter
from composite.hybrid.freezing import Frozen, freeze
from composite.hybrid.module import HybridModule, opened
from composite.hybrid.report import HybridReport, Part
from composite.hybrid.structure import Description, count, indices
from composite.hybrid.tables import Contents
from composite.saving.model_loading import load_model
from composite.trials import drawing, results

_WORD = "composite.hybrid.compile"
_WORDS = 16  # keys of a table that are drawn


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
            results are compared with; where there are no values, floats of [0, 1), integers 0
            and 1, and keys of the model's tables among other texts are drawn.
        signature: of a SavedModel, which one.
        deny: what TensorFlow runs in any case, as `composite.accelerate` takes it.
        min_ops: how many ops that compute a kernel has at least.
        rtol: how far results may be from the model's, as for `composite.accelerate`.

    Returns:
        A HybridModule, which is called as the model is.

    Raises:
        TypeError: if `model` is none of these, or a function comes without inputs.
        ValueError: the model writes into a variable or a table, or keeps state that is neither, or
            takes a resource, or takes or returns what is no tensor, ragged or sparse; its results
            differ from the module's; or an argument is not known.
        FileNotFoundError: if the folder has no SavedModel.
    """
    name, concrete, given, owner = _traced(model, inputs, signature)
    frozen = freeze(concrete, name)
    taken, returned = _structures(concrete, frozen, name)
    partition = regions.partition(frozen, entries(deny, min_ops))
    emitter = Emitter(partition)
    parts = _parts(partition)
    report = HybridReport(
        name, parts, partition.refused, frozen.left_out, tuple(map(str, frozen.kept))
    )
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
    module.report = _compared(module, report, _call(concrete, given, _words(frozen.kept)), rtol)
    del owner  # whose variables the trace reads
    return module


def _structures(concrete: Any, frozen: Frozen, name: str) -> tuple[Any, Any]:
    """What the model takes and returns, with the numbers of tensors in the places of tensors.

    ValueError where that is not tensors alone, ragged and sparse ones included.
    """
    taken = indices(concrete.structured_input_signature, tf.TensorSpec)
    returned = indices(concrete.structured_outputs, (tf.Tensor, tf.TensorSpec))
    if (count(taken), count(returned)) != (len(frozen.inputs), len(concrete.outputs)):
        raise ValueError(
            f"{name} takes or returns what is neither a tensor, nor ragged or sparse: have it take "
            "and return the tensors of that"
        )
    for k, spec in enumerate(frozen.inputs):
        if spec.dtype == tf.resource:
            raise ValueError(f"{name} takes a resource, input {k}: have it capture that")
    return taken, returned


def _traced(model: Any, inputs: Sequence[Any], signature: str) -> tuple[str, Any, list[Any], Any]:
    """What people call the model, its trace, the inputs of a call, and what keeps its variables."""
    if isinstance(model, str | os.PathLike):
        loaded = load_model(model)
        if signature not in loaded.signatures:
            has = ", ".join(sorted(loaded.signatures)) or "none"
            raise ValueError(f"the model has no signature {signature}; it has {has}")
        return signature, loaded.signatures[signature], list(inputs), loaded
    name = tf.compat.as_str(getattr(model, "name", None) or getattr(model, "__name__", "function"))
    if isinstance(model, tf.keras.Model) or hasattr(model, "function_def"):
        return name, concrete_of(model, _WORD), list(inputs), model
    if not callable(model):
        raise TypeError(f"{_WORD} takes a model or a function, not {model!r}")
    if not inputs and getattr(model, "input_signature", None) is None:
        raise TypeError(
            f"{_WORD} needs the inputs of one call of {name}, or tf.TensorSpecs of them"
        )
    function = model if hasattr(model, "get_concrete_function") else tf.function(model)
    is_open = any(isinstance(x, tf.TypeSpec) for x in tf.nest.flatten(list(inputs)))
    return name, function.get_concrete_function(*inputs), [] if is_open else list(inputs), model


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


class _Call(NamedTuple):
    """A call that the module and the model are compared by.

    Attributes:
        model: the trace of the model.
        args: of the call; None if they are not to be had.
        kwargs: those by name.
        drawn: whether nobody gave them.
        why: why they are not to be had.
    """

    model: Any
    args: Sequence[Any] | None = None
    kwargs: Mapping[str, Any] = {}
    drawn: bool = True
    why: str = ""


def _compared(
    module: HybridModule, report: HybridReport, call: _Call, rtol: float | None
) -> HybridReport:
    """The report, with how far the module's results are. ValueError if that is too far."""
    if call.args is None:
        return replace(report, uncompared=call.why)
    try:
        with settings.options(regions=False):
            wanted = results.flat(call.model(*call.args, **call.kwargs))
    except tf.errors.OpError as error:
        if not call.drawn:
            raise
        return replace(report, uncompared=f"the model takes no inputs as drawn: {error.message}")
    found = results.flat(module(*call.args, **call.kwargs))
    moved = results.deviation(found, wanted, rtol)
    if not moved.is_small:
        raise ValueError(
            f"output {moved.output} of the module is {moved.distance:.2g} of its largest |y| away "
            f"from the model's, {moved.bound:.2g} is allowed: state rtol=, or find the region by "
            f"deny=\n{report}"
        )
    return replace(report, deviation=moved)


def _call(concrete: Any, given: Sequence[Any], words: Sequence[bytes]) -> _Call:
    """The inputs that were given, or drawn ones."""
    args, kwargs = concrete.structured_input_signature
    if given:
        is_named = not args and len(given) == 1 and isinstance(given[0], dict)
        args, kwargs = ((), given[0]) if is_named else (tuple(given), {})
        return _Call(concrete, args, kwargs, drawn=False)
    try:
        return _Call(concrete, *_drawn((args, kwargs), words))
    except ValueError as error:
        return _Call(concrete, why=str(error))


def _drawn(structure: Any, words: Sequence[bytes]) -> Any:
    """Inputs for all specs in a structure; what is no spec stays."""
    return tf.nest.map_structure(
        lambda x: drawing.drawn(x, texts=words) if isinstance(x, tf.TypeSpec) else x, structure
    )


def _words(kept: Sequence[Contents | str]) -> list[bytes]:
    """Texts for a model with these tables: keys of theirs, and as many that are in none."""
    held = [c for c in kept if isinstance(c, Contents) and c.keys.dtype == object]
    known = [key for c in held for key in c.keys.ravel()[:_WORDS].tolist()] or [b"0", b"1"]
    taken = {key for c in held for key in (*c.keys.ravel().tolist(), *np.ravel(c.reserved))}
    others = (b"%d" % k for k in itertools.count(2))
    unknown = [next(word for word in others if word not in taken) for _ in known]
    return [word for pair in zip(known, unknown, strict=True) for word in pair]
