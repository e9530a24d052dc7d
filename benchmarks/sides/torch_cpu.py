"""PyTorch on the CPU: eager, traced and frozen, and compiled where that can pay in seconds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from benchmarks.sides.side import Settings, Way
from benchmarks.works.layers import LAYER_NORM_EPSILON, RMS_NORM_EPSILON
from benchmarks.works.recurrent import gates_as_rows
from benchmarks.works.work import Program

# Inductor takes seconds a layer; products it hands to the same library as eager does.
_COMPILED = {"softmax", "layer norm", "RMS norm", "gated", "GELU"}
_COMPILED_LAYERS = 8
_GATES = {"LSTM": (0, 1, 2, 3), "GRU": (1, 0, 2)}  # i, f, g, o and r, z, n

torch.set_num_threads(len(os.sched_getaffinity(0)))


def _dense(x: Any, filter_: Any, bias: Any) -> Any:
    return functional.relu(functional.linear(x, filter_, bias))


def _conv(x: Any, filter_: Any, bias: Any) -> Any:
    return functional.relu(functional.conv2d(x, filter_, bias, padding=1))


def _gated(x: Any, scale: Any, offset: Any) -> Any:
    return torch.tanh(x * scale + offset) * torch.sigmoid(x) + x


# What torch.nn.LSTM and torch.nn.GRU call: one layer with biases and no dropout, in inference, one
# direction, batch first.
_ONE_LAYER: tuple[Any, ...] = (True, 1, 0.0, False, False, True)


def _lstm(x: Any, kernel: Any, recurrent: Any, biases: Any) -> Any:
    zeros = x.new_zeros(1, x.shape[0], recurrent.shape[1])
    return torch.lstm(x, (zeros, zeros), (kernel, recurrent, biases[0], biases[1]), *_ONE_LAYER)[0]


def _gru(x: Any, kernel: Any, recurrent: Any, biases: Any) -> Any:
    zeros = x.new_zeros(1, x.shape[0], recurrent.shape[1])
    return torch.gru(x, zeros, (kernel, recurrent, biases[0], biases[1]), *_ONE_LAYER)[0]


_LAYERS: dict[str, Callable[..., Any]] = {
    "dense": _dense,
    "matmul": torch.matmul,
    "softmax": partial(functional.softmax, dim=-1),
    "layer norm": lambda x, g, b: functional.layer_norm(
        x, (x.shape[-1],), g, b, LAYER_NORM_EPSILON
    ),
    "RMS norm": lambda x, g: functional.rms_norm(x, (x.shape[-1],), g, RMS_NORM_EPSILON),
    "gated": _gated,
    "GELU": partial(functional.gelu, approximate="tanh"),
    "conv 3x3": _conv,
    "attention": functional.scaled_dot_product_attention,
    "LSTM": _lstm,
    "GRU": _gru,
}


class Stack(torch.nn.Module):
    """A program; constants are its parameters."""

    def __init__(self, program: Program, weights: list[Any]) -> None:
        super().__init__()
        self._layer, self._steps = _LAYERS[program.kind], program.steps
        self._constant = program.constant
        for i, weight in enumerate(weights if program.constant else ()):
            self.register_buffer(f"w{i}", weight)

    def forward(self, x: Any, *weights: Any) -> Any:
        """All layers, one after the other."""
        for step in self._steps:
            chosen = [getattr(self, f"w{i}") if self._constant else weights[i] for i in step]
            x = self._layer(x, *chosen)
        return x


class TorchCpu:
    """A module of the program's layers, run in inference mode."""

    def versions(self) -> dict[str, str]:
        """Torch."""
        return {"torch": torch.__version__}

    def columns(self, program: Program) -> dict[str, Settings]:
        """One column; compiled where the machine has a compiler and the layer is one to fuse."""
        x = _tensor(program, program.x, image=True)
        arrays = program.weights
        if program.kind in _GATES:
            arrays = gates_as_rows(arrays, _GATES[program.kind])
        weights = [_tensor(program, weight) for weight in arrays]
        module = Stack(program, weights).eval()
        arguments = (x,) if program.constant else (x, *weights)
        builds = {
            "eager": lambda: _way(program, module, arguments),
            "traced": lambda: _way(program, _traced(module, arguments), arguments),
        }
        small = program.kind in _COMPILED and len(program.steps) <= _COMPILED_LAYERS
        if small and shutil.which("g++") is not None:
            builds["compiled"] = lambda: _way(program, _compiled(module), arguments)
        return {"PyTorch": builds}


def _tensor(program: Program, array: np.ndarray[Any, Any], *, image: bool = False) -> Any:
    tensor = torch.from_numpy(array)
    if program.kind != "conv 3x3" or array.ndim != 4:
        return tensor
    # The memory stays NHWC, the layout that its convolutions prefer.
    return tensor.permute(0, 3, 1, 2) if image else tensor.permute(3, 2, 0, 1).contiguous()


def _traced(module: Any, arguments: tuple[Any, ...]) -> Any:
    with torch.inference_mode():
        return torch.jit.optimize_for_inference(torch.jit.trace(module, arguments))


def _compiled(module: Any) -> Any:
    torch._dynamo.reset()
    return torch.compile(module, dynamic=False)


def _way(program: Program, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Way:
    def run() -> Any:
        with torch.inference_mode():
            return function(*arguments)

    def result() -> Any:
        y = run().numpy()
        return y.transpose(0, 2, 3, 1) if program.kind == "conv 3x3" else y

    return Way(run, result)


def side() -> TorchCpu:
    """The side of this module."""
    return TorchCpu()
