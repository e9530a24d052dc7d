"""Kernels run and timed on other machines, through TVM's RPC: a tracker, and the servers it knows.

A server needs TVM alone: a kernel takes one symbol from its host, which TVM has too, and its loops
run on TVM's threads. Not here: what is measured, and why; starting a tracker or servers.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from composite.compiler.tvm.build import Kernel
from composite.compiler.tvm.link import link

_TIMEOUT = 120  # seconds that one measurement may keep a server
_LEAST_MS = 2  # of one timing: long against the clock


def count_servers(address: tuple[str, int], key: str) -> int:
    """Return how many servers of a key the tracker at (host, port) knows.

    OSError if there is no tracker or no such server, ImportError without the packages for RPC.
    """
    try:
        from tvm import rpc
    except ImportError as error:
        raise ImportError(
            "measuring on other machines needs tornado, psutil and cloudpickle: "
            "pip install 'apache-tvm[rpc]'"
        ) from error
    try:
        socket.create_connection(address, timeout=5).close()  # TVM itself tries for a minute
        summary = rpc.connect_tracker(*address).summary()
    except (OSError, RuntimeError) as error:
        raise OSError(f"no tracker answers at {address[0]}:{address[1]}: {error}") from error
    keys = [str(one["key"]).removeprefix("server:") for one in summary["server_info"]]
    if key not in keys:
        there = ", ".join(sorted(set(keys))) or "none"
        raise OSError(f"the tracker knows no server with the key {key!r}; there are: {there}")
    return keys.count(key)


class Server:
    """The next server of the tracker's that is free, for this object alone until it is let go."""

    def __init__(self, address: tuple[str, int], key: str) -> None:
        from tvm import rpc

        tracker = rpc.connect_tracker(*address)
        self._session = tracker.request(key, session_timeout=_TIMEOUT, max_retry=1)

    def load(
        self, kernel: Kernel, folder: Path, arrays: Sequence[np.ndarray[Any, Any]]
    ) -> Callable[[], float]:
        """Return what runs a kernel there, and gives the seconds of a call.

        Args:
            kernel: The kernel.
            folder: Where the library that is sent is linked.
            arrays: Its inputs and outputs.
        """
        import tvm

        library = folder / f"{kernel.name}_remote.so"
        if not library.exists():
            link(kernel, library, runtime=None)
        self._session.upload(str(library))
        module = self._session.load_module(library.name)
        device = self._session.cpu()
        tensors = [tvm.runtime.tensor(array, device) for array in arrays]
        for number, packed in enumerate(kernel.packed):
            room = tvm.runtime.empty((packed.elements,), packed.dtype, device)
            module[f"{kernel.name}_pack{number}"](tensors[packed.source], room)
            tensors.append(room)
        timer = module.time_evaluator(
            kernel.name, device, number=1, repeat=1, min_repeat_ms=_LEAST_MS
        )
        return lambda: float(timer(*tensors).mean)
