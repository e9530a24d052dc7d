"""OpenVINO, its CPU plugin: one request whose inputs are set once, with the hint for latency."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import openvino

from benchmarks.sides import onnx_models
from benchmarks.sides.side import Settings, Way
from benchmarks.works.work import Program

_CORE = openvino.Core()
_COMMON = {
    "PERFORMANCE_HINT": "LATENCY",
    "INFERENCE_NUM_THREADS": len(os.sched_getaffinity(0)),
    "INFERENCE_PRECISION_HINT": "f32",
}
_SETTINGS = {"not pinned": {"ENABLE_CPU_PINNING": False}, "pinned": {"ENABLE_CPU_PINNING": True}}


class OpenVino:
    """Models read from ONNX and compiled for latency."""

    def versions(self) -> dict[str, str]:
        """openvino, without the hash of its build."""
        return {"openvino": openvino.__version__.partition("-")[0]}

    def columns(self, program: Program) -> dict[str, Settings]:
        """One column, threads pinned to cores or not."""
        model = onnx_models.model(program)
        builds = {name: partial(_way, program, model, s) for name, s in _SETTINGS.items()}
        return {"OpenVINO": builds}


def _way(program: Program, model: bytes, settings: dict[str, Any]) -> Way:
    compiled = _CORE.compile_model(_CORE.read_model(model), "CPU", {**_COMMON, **settings})
    request = compiled.create_infer_request()
    arrays = onnx_models.feeds(program)  # shared with the tensors, so they must outlive the request
    for name, array in arrays.items():
        request.set_tensor(name, openvino.Tensor(array, shared_memory=True))

    def run(_arrays: Any = arrays) -> None:
        request.infer(share_inputs=True, share_outputs=True)

    def result() -> Any:
        run()
        return onnx_models.from_onnx(program, request.get_output_tensor(0).data.copy())

    return Way(run, result)


def side() -> OpenVino:
    """The side of this module."""
    return OpenVino()
