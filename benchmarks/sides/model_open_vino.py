"""OpenVINO on a model of Keras: it reads TensorFlow's SavedModel itself."""

from __future__ import annotations

from functools import partial
from typing import Any

import openvino

from benchmarks.sides.open_vino import SETTINGS, requested, versions
from benchmarks.sides.side import Settings, Way
from benchmarks.works.model_work import ModelProgram


class OpenVinoModels:
    """SavedModels, converted and compiled for latency."""

    def versions(self) -> dict[str, str]:
        """Those of the library."""
        return versions()

    def columns(self, program: ModelProgram) -> dict[str, Settings]:
        """One column, threads pinned to cores or not."""
        model = openvino.convert_model(program.saved_model)
        return {
            "OpenVINO": {name: partial(_way, program, model, s) for name, s in SETTINGS.items()}
        }


def _way(program: ModelProgram, model: Any, settings: dict[str, Any]) -> Way:
    return Way(*requested(model, program.inputs, list(program.outputs), settings))


def side() -> OpenVinoModels:
    """The side of this module."""
    return OpenVinoModels()
