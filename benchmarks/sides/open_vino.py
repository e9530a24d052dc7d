"""OpenVINO, its CPU plugin: one request whose inputs are set once, with the hint for latency."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import openvino

from benchmarks.sides import onnx_models
from benchmarks.sides.side import Settings, Way
from benchmarks.works.layers import Array
from benchmarks.works.work import Program

_CORE = openvino.Core()
_COMMON = {
    "PERFORMANCE_HINT": "LATENCY",
    "INFERENCE_NUM_THREADS": len(os.sched_getaffinity(0)),
    "INFERENCE_PRECISION_HINT": "f32",
}
SETTINGS = {"not pinned": {"ENABLE_CPU_PINNING": False}, "pinned": {"ENABLE_CPU_PINNING": True}}


class OpenVino:
    """Models read from ONNX and compiled for latency."""

    def versions(self) -> dict[str, str]:
        """Those of the library."""
        return versions()

    def columns(self, program: Program) -> dict[str, Settings]:
        """One column, threads pinned to cores or not."""
        model = onnx_models.model(program)
        builds = {name: partial(_way, program, model, s) for name, s in SETTINGS.items()}
        return {"OpenVINO": builds}


def versions() -> dict[str, str]:
    """openvino, without the hash of its build."""
    return {"openvino": openvino.__version__.partition("-")[0]}


def requested(
    model: Any, feeds: Mapping[str, Array], outputs: Sequence[str], settings: Mapping[str, Any]
) -> tuple[Callable[[], None], Callable[[], list[Any]]]:
    """What runs a model on these inputs, and what runs it and gives the outputs of these names."""
    compiled = _CORE.compile_model(model, "CPU", {**_COMMON, **settings})
    request = compiled.create_infer_request()
    for name, array in feeds.items():
        request.set_tensor(name, openvino.Tensor(array, shared_memory=True))

    def run(_feeds: Any = feeds) -> None:  # shared with the tensors: they outlive the request
        request.infer(share_inputs=True, share_outputs=True)

    def result() -> list[Any]:
        run()
        return [request.get_tensor(name).data.copy() for name in outputs]

    return run, result


def _way(program: Program, model: bytes, settings: Mapping[str, Any]) -> Way:
    feeds = onnx_models.feeds(program)
    run, result = requested(_CORE.read_model(model), feeds, ["y"], settings)
    return Way(run, lambda: onnx_models.from_onnx(program, result()[0]))


def side() -> OpenVino:
    """The side of this module."""
    return OpenVino()
