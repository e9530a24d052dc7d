"""PyTorch on the same GPU: cuBLAS, its attention, its norms, and what `torch.compile` makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.gpu.timing import best
from benchmarks.gpu.works import GpuWork


class TorchPeer:
    """PyTorch, which `available` says is there and sees a GPU."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self.version = f"PyTorch {torch.__version__}"
        self._functions: dict[str, Callable[..., Any]] = {
            "dense": lambda x, w, b: torch.relu(torch.addmm(b, x, w)),
            "matmul": torch.matmul,
            "attention": lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(
                q[None], k[None], v[None]
            ),
            "softmax": lambda x: torch.softmax(x, -1),
            "layer_norm": lambda x, s, o: torch.nn.functional.layer_norm(x, x.shape[-1:], s, o),
            "gated": lambda x, y: torch.tanh(x) * torch.sigmoid(y) + x,
        }
        self._layers = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}

    def seconds(self, work: GpuWork, inputs: Sequence[Any]) -> float:
        """Of the faster of the function and the compiled one; 0 for a work without a peer."""
        torch = self._torch
        if work.peer not in {*self._functions, *self._layers}:
            return 0.0
        torch.backends.cuda.matmul.allow_tf32 = work.tensor_float_32
        torch.backends.cudnn.allow_tf32 = work.tensor_float_32
        tensors = [torch.from_numpy(x.copy()).cuda() for x in inputs]
        if work.dtype == "bfloat16":
            tensors = [t.view(torch.bfloat16) for t in tensors]
        if work.peer in self._layers:
            x, *weights = tensors
            function, tensors = self._layer(work.peer, weights), [x]
        else:
            function = self._functions[work.peer]
        with torch.no_grad():
            found = [best(self, lambda: function(*tensors))]
            compiled = torch.compile(function)
            found.append(best(self, lambda: compiled(*tensors)))
        return min(found)

    def _layer(self, name: str, weights: Sequence[Any]) -> Any:
        """A recurrent layer of cuDNN's, whose gates are in the order of the works."""
        k, r, b = weights
        layer = self._layers[name](k.shape[0], r.shape[0], batch_first=True)
        layer = layer.to(device=k.device, dtype=k.dtype)
        own = (layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0)
        with self._torch.no_grad():
            for parameter, value in zip(own, (k.T, r.T, b, self._torch.zeros_like(b)), strict=True):
                parameter.copy_(value)
        return layer

    def together(self, run: Callable[[], None], count: int) -> Callable[[], None]:
        """A graph of so many runs, or the runs themselves where PyTorch records none of them."""
        torch = self._torch
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                for _ in range(count):
                    run()
        except RuntimeError as why:
            print(f"PyTorch, without a graph: {str(why).splitlines()[0]}", flush=True)
            torch.cuda.synchronize()
            return lambda: _several(run, count)
        return graph.replay

    def milliseconds(self, run: Callable[[], None]) -> float:
        """How long the GPU takes for what a function launches."""
        cuda = self._torch.cuda
        begin, end = (cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        run()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end))


def _several(run: Callable[[], None], count: int) -> None:
    for _ in range(count):
        run()


def available() -> TorchPeer | None:
    """PyTorch, if it is installed and sees a GPU."""
    try:
        import torch
    except ImportError:
        return None
    return TorchPeer() if torch.cuda.is_available() else None
