"""ONNX Runtime, its CPU provider: inputs and outputs are bound, so that a call copies nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import onnx
import onnxruntime

from benchmarks.sides import onnx_models
from benchmarks.sides.side import Settings, Way
from benchmarks.works.layers import Array
from benchmarks.works.work import Program

# Spinning workers stop when a run ends: between two runs the machine belongs to another side.
SETTINGS = {
    "spinning": {"session.intra_op.allow_spinning": "1", "session.force_spinning_stop": "1"},
    "blocking": {"session.intra_op.allow_spinning": "0"},
    "spinning, not prepacked": {
        "session.intra_op.allow_spinning": "1",
        "session.force_spinning_stop": "1",
        "session.disable_prepacking": "1",
    },
}


class OnnxRuntime:
    """Sessions with every setting that its documentation names for latency."""

    def versions(self) -> dict[str, str]:
        """Those of the library."""
        return versions()

    def columns(self, program: Program) -> dict[str, Settings]:
        """One column; prepacking concerns constants only."""
        model = onnx_models.model(program)
        prepacked = program.constant and bool(program.weights)
        builds: dict[str, Callable[[], Way]] = {
            name: partial(_way, program, model, entries)
            for name, entries in SETTINGS.items()
            if prepacked or "session.disable_prepacking" not in entries
        }
        return {"ONNX Runtime": builds}


def versions() -> dict[str, str]:
    """onnxruntime, and onnx, which writes the models."""
    return {"onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__}


def bound(
    model: bytes, feeds: Mapping[str, Array], outputs: Sequence[str], entries: Mapping[str, str]
) -> tuple[Callable[[], None], Callable[[], list[Any]]]:
    """What runs a model on these inputs, and what runs it and gives the outputs of these names."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    for name, value in entries.items():
        options.add_session_config_entry(name, value)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    values = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in feeds.items()
    }
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    for name in outputs:
        binding.bind_output(name, "cpu")

    def run(_values: Any = values) -> None:
        session.run_with_iobinding(binding)

    def result() -> list[Any]:
        run()
        return list(binding.copy_outputs_to_cpu())

    return run, result


def _way(program: Program, model: bytes, entries: Mapping[str, str]) -> Way:
    run, result = bound(model, onnx_models.feeds(program), ["y"], entries)
    return Way(run, lambda: onnx_models.from_onnx(program, result()[0]))


def side() -> OnnxRuntime:
    """The side of this module."""
    return OnnxRuntime()
