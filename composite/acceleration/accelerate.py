"""`composite.accelerate`: kernels for a function, a Keras model, or the folder of a SavedModel."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, overload

import tensorflow as tf

from composite.acceleration.comparing import Accelerated, Terms, at_batch, compared
from composite.acceleration.later import Accelerating
from composite.acceleration.report import LEAST_GAIN, ModelReport
from composite.ops import call
from composite.ops.keras_models import inputs_of
from composite.ops.op import CompositeOp
from composite.progress import activity
from composite.progress.event import Listener
from composite.trials import drawing

MIN_OPS = 2  # a region has them anyway
_Path = str | os.PathLike[str]


@overload
def accelerate(
    model: Callable[..., Any],
    *inputs: Any,
    size: int = ...,
    deny: Sequence[str] = ...,
    min_ops: int = ...,
    min_gain: float = ...,
    rtol: float | None = ...,
    timeout: float | None = ...,
    xla: bool = ...,
    batches: Sequence[int] = ...,
    ops: Sequence[CompositeOp] | None = ...,
    progress: Listener | None = ...,
    wait: Literal[True] = ...,
) -> Accelerated: ...


@overload
def accelerate(
    model: Callable[..., Any],
    *inputs: Any,
    size: int = ...,
    deny: Sequence[str] = ...,
    min_ops: int = ...,
    min_gain: float = ...,
    rtol: float | None = ...,
    timeout: float | None = ...,
    xla: bool = ...,
    batches: Sequence[int] = ...,
    ops: Sequence[CompositeOp] | None = ...,
    progress: Listener | None = ...,
    wait: Literal[False],
) -> Accelerating: ...


@overload
def accelerate(
    model: _Path,
    *inputs: Any,
    out: _Path,
    signatures: Sequence[str] | None = ...,
    size: int = ...,
    deny: Sequence[str] = ...,
    min_ops: int = ...,
    min_gain: float = ...,
    rtol: float | None = ...,
    timeout: float | None = ...,
    progress: Listener | None = ...,
) -> ModelReport: ...


def accelerate(  # noqa: PLR0913 - of a folder there is more to say
    model: Any,
    *inputs: Any,
    out: _Path | None = None,
    signatures: Sequence[str] | None = None,
    size: int = drawing.SIZE,
    deny: Sequence[str] = (),
    min_ops: int = MIN_OPS,
    min_gain: float = LEAST_GAIN,
    rtol: float | None = None,
    timeout: float | None = None,
    xla: bool = False,
    batches: Sequence[int] = (),
    ops: Sequence[CompositeOp] | None = (),
    progress: Listener | None = None,
    wait: bool = True,
) -> Accelerated | Accelerating | ModelReport:
    """Gives kernels to parts of the graph of a function, where that makes it faster.

    No composite has to be written: regions of TensorFlow's own ops become nodes, each of which has
    a kernel where one covers it and was measured to be no slower. The function is run on `inputs`
    without and with regions; the results are compared and both are timed.

    Args:
        model: a Python function, a tf.function, or a Keras model, which is called for inference.
            What it returns must follow from its inputs and its variables. Or the folder of a
            SavedModel, whose Python code is not needed: each signature is such a function.
        *inputs: the arguments of one call, as large as calls will be. Of a Keras model they may be
            left out: they are drawn then, integers as 0 and 1. Of a folder it is one dict of the
            signatures' inputs by their names; those that are not in it are drawn.
        out: for a folder, the one to write: the same model, in which the signatures that gain have
            regions, and their kernels lie, for `composite.load_model(out, native_code=True)`.
            What is there is replaced when all went well.
        signatures: for a folder, which signatures to look at; by default all.
        size: what drawn inputs have for a dim that is not known.
        deny: what stays outside of regions: ops, such as "Softmax"; nodes by their names,
            "name:*/head/*", in which * stands for any characters; or whole regions by the last
            digits of their names, as the report has them, "region:1a2b3c4d".
        min_ops: how many ops that compute a region has at least.
        min_gain: the original is run unless it takes so many times as long as with regions.
        rtol: how far results may be from those without regions, as a part of the largest absolute
            value of the output: 1e-3 by default, 5e-2 where the output has 16 bits.
        timeout: seconds to wait for kernels at most; those that come later are used all the same.
        xla: compare and time what XLA makes of the whole function, too, without kernels and with
            kernels for its regions, and call one of these where it is the fastest. XLA compiles
            anew for each shape, while the call waits. Not for a folder.
        batches: further sizes of the first dim of the inputs, at each of which the function is
            run, compared and timed, too: calls of that size run what was the fastest at it. Calls
            of a size that was not measured run what was the fastest with `inputs`. Not for a
            folder.
        ops: composites that are put in the places of what computes the same, before regions are
            formed around them and with them, as `composite.recognize` does; None for all of the
            process. For each shape anew, while the call waits. Not for a folder.
        progress: is called with ProgressEvents, a part for each kernel. Without it, standard error
            shows them if it is a terminal.
        wait: if False, return at once: what is returned runs the original, and switches over by
            itself once a thread has done the rest. `progress` is called by that thread then, and
            a terminal shows nothing. Not for a folder.

    Returns:
        An Accelerated, which is called as `model` is. It runs the original where nothing else has
        results within `rtol` and gains; `print` its `report`. Without `wait` an Accelerating. For
        a folder the report.

    Raises:
        TypeError: if `model` is not callable and no folder, or a folder comes without `out`, or
            with `xla`, `batches`, `ops` or `wait=False`; or for `ops` that are no composites.
        ValueError: without inputs, unless a Keras model tells them, for signatures or inputs that
            the SavedModel has not, for what `deny` does not take, for `batches` of inputs that have
            no first dim, or where `ops` is None and the process has no composites; for `wait=False`
            where ops have to be deterministic, since nobody knows which call is the first to
            switch.
        FileNotFoundError: if the folder has no SavedModel.
        ImportError: if the SavedModel needs composites that are not loaded.
    """
    terms = Terms(entries(deny, min_ops), rtol, timeout, min_gain, xla, tuple(batches))
    if isinstance(model, str | os.PathLike):
        from composite.acceleration import model_folder

        folder = _folder_to_write(out, ops, wait=wait, xla=xla, batches=bool(batches))
        asked = model_folder.Call(of_folder(inputs), signatures, size, terms)
        with activity.told(f"accelerate {model}", progress):
            return model_folder.accelerated(Path(model), folder, asked)
    if out is not None or signatures is not None:
        raise TypeError("out= and signatures= are for the folder of a SavedModel")
    called = call_of(model, inputs, size)
    for batch in terms.batches:
        at_batch(called.arguments, batch)  # before anything is compiled

    def made() -> Accelerated:
        with activity.told(f"accelerate {called.name}", progress, is_awaited=wait):
            return compared(*called, replace(terms, at_rest=wait), ops)

    return made() if wait else _later(model, called, made)


def _folder_to_write(
    out: _Path | None,
    ops: Sequence[CompositeOp] | None,
    *,
    wait: bool,
    xla: bool,
    batches: bool,
) -> Path:
    """The folder to write. TypeError without one, or for arguments that a folder does not take."""
    if out is None:
        raise TypeError("composite.accelerate of a folder needs out=, the folder to write")
    if xla:
        raise TypeError("xla= is for a function of this process: no folder says who compiles it")
    if batches:
        raise TypeError("batches= is for a function: the inputs of a folder are one dict")
    if ops is None or ops:
        raise TypeError("ops= is for a function: give the folder to composite.recognize first")
    if not wait:
        raise TypeError("wait=False is for a function: a folder is written before it returns")
    return Path(out)


def _later(model: Any, called: Called, made: Callable[[], Accelerated]) -> Accelerating:
    """`made()` by another thread. ValueError where it may not be seen when that is done."""
    if call.is_deterministic():
        raise ValueError(
            "wait=False switches over at a call that nobody knows, and ops have to be "
            "deterministic (tf.config.experimental.enable_op_determinism): leave it out"
        )
    if isinstance(model, tf.keras.Model) and not model.built:
        called.function(*called.arguments)  # two threads would each make its variables
    return Accelerating(called.function, called.name, made)


class Called(NamedTuple):
    """A call to accelerate: the function, its name for people, and the arguments."""

    function: Callable[..., Any]
    name: str
    arguments: list[Any]


def call_of(model: Any, inputs: Sequence[Any], size: int = drawing.SIZE) -> Called:
    """The call of a function or a Keras model, whose inputs are drawn where none are given."""
    if not callable(model):
        raise TypeError(f"composite.accelerate takes a function or a model, not {model!r}")
    return Called(_inference(model), _name(model), list(inputs) or _drawn(model, size))


def entries(deny: Sequence[str], min_ops: int = 0) -> tuple[str, ...]:
    """What stays outside, in order, as the runtime takes it. ValueError for what is none of it."""
    for entry in deny:
        kind, is_prefixed, named = entry.partition(":")
        if not is_prefixed and call.op_def(entry) is None:
            raise ValueError(f"deny={list(deny)}: {entry} is no op of TensorFlow")
        if is_prefixed and (kind not in ("name", "region") or not named):
            raise ValueError(
                f'deny={list(deny)}: {entry} is neither an op, nor "name:" and a pattern, '
                'nor "region:" and the end of a region\'s name'
            )
    least = [f"smaller:{min_ops}"] if min_ops > MIN_OPS else []
    return tuple(sorted({*deny, *least}))


def of_folder(inputs: Sequence[Any]) -> dict[str, Any]:
    """The inputs of signatures, by their names."""
    if len(inputs) > 1 or not all(isinstance(one, dict) for one in inputs):
        raise TypeError("the inputs of a SavedModel are one dict, values by their names")
    return dict(inputs[0]) if inputs else {}


def _name(function: Any) -> str:
    return str(getattr(function, "name", None) or getattr(function, "__name__", "function"))


def _inference(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is called: a Keras model's inference, any other function as it is."""
    if not isinstance(function, tf.keras.Model):
        return function

    def infer(*args: Any) -> Any:
        return function(*args, training=False)

    return infer


def _drawn(model: Any, size: int) -> list[Any]:
    """One call of a Keras model, drawn."""
    if not isinstance(model, tf.keras.Model):
        raise ValueError("composite.accelerate needs the inputs of one call of the function")
    given = inputs_of(model)
    if given is None:
        raise ValueError(
            f"composite.accelerate needs the inputs of one call of {_name(model)}, which does not "
            "say what it takes: give them, composite.accelerate(model, x), or build the model with "
            "keras.Input"
        )
    return [drawing.drawn(given, size)]
