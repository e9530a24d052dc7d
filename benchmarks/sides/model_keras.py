"""Ours and TensorFlow on a model of Keras, in one process; what others read of it is written here.

A call of ours is a call of what `composite.accelerate` returns; TensorFlow's is one of a
tf.function, without and with XLA.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import keras
import tensorflow as tf

# Of TensorFlow 2.21: its API has no function that freezes another.
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

import composite
from benchmarks.sides.side import Settings, Way
from benchmarks.sides.team import OURS
from benchmarks.works.layers import Array
from benchmarks.works.model_work import PLAIN, REGIONS, XLA, ModelProgram
from benchmarks.works.models import MODELS, inputs


class KerasModels:
    """Builds a model, hands it out, and runs it in all of our ways and TensorFlow's."""

    def versions(self) -> dict[str, str]:
        """This project, and what made and runs the models."""
        return {
            "tf-composite": composite.__version__,
            "tensorflow": tf.__version__,
            "keras": keras.__version__,
        }

    def columns(self, program: ModelProgram) -> dict[str, Settings]:
        """Ours, regions where they are right, TensorFlow, and XLA where it compiles the model."""
        keras.utils.set_random_seed(0)
        model = MODELS[program.model]()
        given = inputs(model, program.batch)

        def infer(y: Any) -> Any:
            return model(y, training=False)

        hand_out(program, infer, given)
        regions = composite.accelerate(infer, given, min_gain=0.0)
        ours = composite.accelerate(infer, given, xla=True)
        columns: dict[str, Settings] = {OURS: {"": partial(_way, ours, given, _told(ours.report))}}
        if regions.report.is_gain:  # any speed is one; else it calls the original
            columns[REGIONS] = {"": partial(_way, regions, given)}
        columns[PLAIN] = {"": partial(_way, tf.function(infer, autograph=False), given)}
        compiled = ours.report.xla
        if compiled is not None and not compiled.refusal and compiled.deviation.is_small:
            by_xla = tf.function(infer, autograph=False, jit_compile=True)
            columns[XLA] = {"": partial(_way, by_xla, given)}
        return columns


def hand_out(program: ModelProgram, infer: Callable[[Any], Any], given: Any) -> None:
    """Writes all files of a model that `infer` calls."""
    flat = tf.nest.flatten(given)

    def serve(*inputs: Any) -> dict[str, Any]:
        return _named("output", tf.nest.flatten(infer(tf.nest.pack_sequence_as(given, inputs))))

    specs = [tf.TensorSpec(x.shape, x.dtype, name) for name, x in _named("input", flat).items()]
    concrete = tf.function(serve, autograph=False).get_concrete_function(*specs)
    program.write_call(_arrays(flat), _arrays(infer(given)))
    module = tf.Module()
    module.serve = convert_variables_to_constants_v2(concrete, lower_control_flow=False)
    # Gradients are for who trains it; Keras' swish has one that captures, which cannot be saved.
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(module, str(program.saved_model), module.serve, options)
    try:
        program.write_onnx(composite.to_onnx(concrete).SerializeToString())
    except ValueError as refused:
        program.write_onnx(refused)


def _named(name: str, values: list[Any]) -> dict[str, Any]:
    return {f"{name}_{place}": value for place, value in enumerate(values)}


def _arrays(values: Any) -> list[Array]:
    return [value.numpy() for value in tf.nest.flatten(values)]


def _way(function: Callable[[Any], Any], given: Any, note: str = "") -> Way:
    return Way(lambda: function(given), lambda: _arrays(function(given)), note)


def _told(report: Any) -> str:
    """What calls run, the times that this was chosen by, and what regions are and ran."""
    choices = {"original": report.original_us, "regions": report.accelerated_us}
    if report.xla is not None and not report.xla.refusal:
        choices["XLA"] = report.xla.microseconds
    times = ", ".join(f"{way} {us:.0f} us" for way, us in choices.items())
    parts = [report.verdict, f"direct: {times}"]
    calls = report.calls.values()
    kernels, of_all = sum(one.kernel for one in calls), sum(one.calls for one in calls)
    parts.append(f"kernels serve {kernels} of {of_all} regions")
    if outside := report.partition.outside:
        most = ", ".join(f"{count} {op}" for op, count in outside.most_common(5))
        parts.append(f"{outside.total()} ops outside, most: {most}")
    return "; ".join(parts)


def side() -> KerasModels:
    """The side of this module."""
    return KerasModels()
