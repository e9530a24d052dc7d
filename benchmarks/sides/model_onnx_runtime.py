"""ONNX Runtime on a model of Keras, as tf2onnx converts it."""

from __future__ import annotations

from functools import partial

from benchmarks.sides.onnx_runtime import SETTINGS, bound, versions
from benchmarks.sides.side import Settings, Way
from benchmarks.works.model_work import ModelProgram


class OnnxRuntimeModels:
    """Sessions in all settings; all inputs and outputs are bound."""

    def versions(self) -> dict[str, str]:
        """Those of the library."""
        return versions()

    def columns(self, program: ModelProgram) -> dict[str, Settings]:
        """One column."""
        model = program.onnx
        builds = {name: partial(_way, program, model, s) for name, s in SETTINGS.items()}
        return {"ONNX Runtime": builds}


def _way(program: ModelProgram, model: bytes, entries: dict[str, str]) -> Way:
    return Way(*bound(model, program.inputs, list(program.outputs), entries))


def side() -> OnnxRuntimeModels:
    """The side of this module."""
    return OnnxRuntimeModels()
