"""Measures kernels on other machines, through TVM's RPC: a tracker, and servers that it knows.

Each measurement takes a server of the tracker's for itself, loads both kernels there, and runs them
in turns with TVM's own timer and threads. So a server needs TVM alone: no TensorFlow, nothing of
ours. Times are of a bare kernel on inputs that are in the cache if they fit, not of a node in a
graph; the ratio to the default is what counts. Kernels were checked here before they are sent.

Not for: starting a tracker or servers; who connects to a tracker runs what it is sent, so they
listen on loopback unless their owner says otherwise. See docs/tuning.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from composite.binding.kernel_request import KernelRequest
from composite.compiler.tvm import remote as backend_remote
from composite.kernels import shapes
from composite.kernels.expansions import expand
from composite.kernels.tuned import Measured
from composite.ops import functions
from composite.tuning import rounds
from composite.tuning.space import Built


class Remote:
    """The servers of a tracker that have a key; `default` is the kernel to compare with.

    ValueError when `tracker` is no "host:port", OSError when there is no tracker, or it knows no
    server of the key; ImportError when TVM's RPC is not installed.
    """

    def __init__(self, request: KernelRequest, default: Built, tracker: str, key: str) -> None:
        self._address = _address(tracker)
        if not key or any(c.isspace() for c in key):  # where TVM's protocol ends it
            raise ValueError(f"{key!r} is no key of servers: a word, as they were started with")
        self._key = key
        self.machine = f"rpc {key}"
        self.workers = backend_remote.count_servers(self._address, key)
        self._default = default
        self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="composite-tune")
        dims = request.in_shapes
        self._arguments = [
            _arguments(request, shapes.substitute(dims, values), default)
            for values in shapes.to_measure(
                request, default.kernel.minimums, default.kernel.divisors
            )
        ]

    def submit(self, candidate: Built, seconds: float) -> Future[Measured]:
        """Compares on the next server that is free."""
        return self._pool.submit(self._compare, candidate, seconds, self._arguments[0])

    def elsewhere(self, candidate: Built, seconds: float) -> Sequence[Measured]:
        """The same at the other sizes of the class."""
        found = [
            self._pool.submit(self._compare, candidate, seconds, arguments)
            for arguments in self._arguments[1:]
        ]
        return [future.result() for future in found]

    def close(self) -> None:
        """Waits for what runs."""
        self._pool.shutdown()

    def _compare(
        self, candidate: Built, seconds: float, arguments: Sequence[np.ndarray[Any, Any]]
    ) -> Measured:
        server = backend_remote.Server(self._address, self._key)
        default, other = (
            server.load(one.kernel, one.library.parent, arguments)
            for one in (self._default, candidate)
        )
        found = rounds.run(default, other, seconds)
        return rounds.summary(found, self._default.code)


def _arguments(
    request: KernelRequest, exact: Sequence[tuple[int, ...]], default: Built
) -> list[np.ndarray[Any, Any]]:
    """Inputs and outputs of a call."""
    body = functions.body(expand(request, exact))
    random = np.random.default_rng(0)
    inputs = []
    for dtype, shape in zip(body.input_dtypes, exact, strict=True):  # of sizes none is read
        floating = dtype.is_floating
        drawn = random.standard_normal(shape) if floating else random.integers(0, 2, shape)
        inputs.append(np.asarray(drawn).astype(dtype.as_numpy_dtype))
    dims = request.in_shapes
    values = {
        name: size
        for shape, sizes in zip(dims, exact, strict=True)
        for name, size in zip(shape, sizes, strict=True)
        if isinstance(name, str)
    }
    outputs = [
        np.zeros(shapes.evaluate(text, values), dtype.as_numpy_dtype)
        for text, dtype in zip(default.kernel.out_shapes, body.output_dtypes, strict=True)
    ]
    return [*inputs, *outputs]


def _address(tracker: str) -> tuple[str, int]:
    host, colon, port = tracker.rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError(f"a tracker is HOST:PORT, not {tracker!r}")
    return host or "127.0.0.1", int(port)
