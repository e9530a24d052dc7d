"""Models that are served under names, each in versions of which the latest one answers.

A model is a folder with a SavedModel in each of its subfolders, whose names are numbers, as
TensorFlow Serving has them. A version that appears (write it elsewhere and rename it) is loaded
beside the one that answers, and takes its place once it has answered a call. So does the latest
version once more when its process has ended.

Not for: how a call is computed (worker.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Event, Lock, Thread
from typing import NamedTuple

import numpy as np
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

from examples.serving.worker import Batches, Process, Rows

SIGNATURE = "serving_default"
_LOOK_EVERY = 0.5  # seconds
_MOST_ROWS = 1024  # of a batch


class Signature(NamedTuple):
    """The one input and the one output of a model, float32 [rows, columns].

    Attributes:
        input: as clients name it.
        output: as clients name it.
        ends: the ops of the graph that take the one and give the other.
        columns: of the input.
    """

    input: str
    output: str
    ends: tuple[str, str]
    columns: int

    @classmethod
    def of(cls, folder: Path) -> Signature:
        """The signature of a SavedModel. ValueError where it has not one input and one output."""
        saved = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
        found: SignatureDef = saved.meta_graphs[0].signature_def[SIGNATURE]
        if len(found.inputs) != 1 or len(found.outputs) != 1:
            raise ValueError(f"{folder}: {SIGNATURE} has not one input and one output")
        ((input_, taken),) = found.inputs.items()
        ((output, given),) = found.outputs.items()
        ends = (taken.name.partition(":")[0], given.name.partition(":")[0])
        return cls(input_, output, ends, taken.tensor_shape.dim[-1].size)


class Version(NamedTuple):
    """A version of a model that is loaded."""

    number: int
    signature: Signature
    batches: Batches


class Model:
    """A model whose latest version answers, and a thread that looks for later ones."""

    def __init__(self, name: str, folder: Path, program: Path, library: Path) -> None:
        """Loads the latest version. FileNotFoundError where there is none."""
        self._name = name
        self._folder = folder
        self._programs = (program, library)
        self._swap = Lock()
        self._closing = Event()
        latest = self._latest()
        if latest is None:
            raise FileNotFoundError(f"{folder} has no subfolder whose name is a number")
        self._current = self._loaded(latest)
        self._thread = Thread(target=self._look, daemon=True)
        self._thread.start()

    def submit(self, given: Callable[[Signature], Rows]) -> tuple[Version, Future[Rows]]:
        """The version that answers, and its outputs for `given(signature)` once they are there."""
        with self._swap:  # a version is closed after its last call
            version = self._current
            return version, version.batches.submit(given(version.signature))

    def close(self) -> None:
        """Answers what was submitted, and ends the process."""
        self._closing.set()
        self._thread.join()
        self._close(self._current)

    def _latest(self) -> int | None:
        numbers = (int(path.name) for path in self._folder.iterdir() if path.name.isdecimal())
        return max(numbers, default=None)

    def _loaded(self, number: int) -> Version:
        folder = self._folder / str(number)
        signature = Signature.of(folder)
        process = Process(*self._programs, folder, signature.ends)
        batches = Batches(process, _MOST_ROWS)
        # It answers before anybody waits for it: the model is loaded, and its kernels are found.
        batches.submit(np.zeros([1, signature.columns], np.float32)).result()
        print(f"{self._name}: version {number} is loaded", flush=True)
        return Version(number, signature, batches)

    def _look(self) -> None:
        refused = None
        while not self._closing.wait(_LOOK_EVERY):
            latest = self._latest()
            there = None if self._current.batches.failed else self._current.number
            if latest is None or latest in (there, refused):
                continue
            try:
                loaded = self._loaded(latest)
            except (OSError, ValueError) as error:
                refused = latest
                print(f"{self._name}: version {latest} is not loaded: {error}", file=sys.stderr)
                continue
            with self._swap:
                last, self._current = self._current, loaded
            self._close(last)

    def _close(self, version: Version) -> None:
        version.batches.close()
        counts = f"{version.batches.calls} calls in {version.batches.batches} batches"
        print(f"{self._name}: version {version.number} is closed: {counts}", flush=True)
