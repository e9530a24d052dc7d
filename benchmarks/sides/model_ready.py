"""How long other libraries take until a model can be called: run by their own interpreter.

`python -m benchmarks.sides.model_ready LIBRARY MODEL FOLDER` prints one line, as
works/readiness.py does. It needs none of our packages; the model lies in the folder.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from benchmarks.works.model_work import ModelProgram
from benchmarks.works.readiness import MARK, Ready, peak


def open_vino(program: ModelProgram) -> float:
    """`compile_model`, for latency, of a SavedModel that was converted before."""
    import openvino

    model = openvino.convert_model(program.saved_model)
    core = openvino.Core()
    start = time.perf_counter()
    core.compile_model(model, "CPU", {"PERFORMANCE_HINT": "LATENCY"})
    return time.perf_counter() - start


def onnx_runtime(program: ModelProgram) -> float:
    """A session."""
    import onnxruntime

    model = program.onnx
    start = time.perf_counter()
    onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return time.perf_counter() - start


def torch_compile(program: ModelProgram) -> float:
    """The first call of what `torch.compile` returns, less the second. Of dense layers alone."""
    import torch

    if program.model != "dense stack":
        raise ValueError(f"{program.model} is not written for PyTorch")
    layer = (torch.nn.Linear(512, 512), torch.nn.ReLU())
    module = torch.compile(torch.nn.Sequential(*[part for _ in range(16) for part in layer]).eval())
    x = torch.from_numpy(program.inputs["input_0"])
    seconds = []
    with torch.inference_mode():
        for _ in range(2):
            start = time.perf_counter()
            module(x)
            seconds.append(time.perf_counter() - start)
    return seconds[0] - seconds[1]


LIBRARIES: Mapping[str, Callable[[ModelProgram], float]] = {
    "OpenVINO": open_vino,
    "ONNX Runtime": onnx_runtime,
    "torch.compile": torch_compile,
}


def main(library: str, model: str, folder: str) -> None:
    """Measures, and prints what was found."""
    seconds = LIBRARIES[library](ModelProgram(model, 1, Path(folder)))
    print(MARK + json.dumps(asdict(Ready(seconds, megabytes=peak()))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
