"""A model at a batch: a work that the side with Keras hands to the others, as files in a folder.

Imports NumPy alone: the others live in an environment without our packages.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.works.layers import Array

REGIONS, PLAIN, XLA = "regions alone", "TensorFlow", "TensorFlow with XLA"
"""Columns of the side with Keras, beside ours: regions, chosen or not, and TensorFlow's ways."""

TOLERANCE = 1e-3
"""How far results may be apart, as a part of the largest absolute value of an output."""


@dataclass(frozen=True)
class ModelWork:
    """A model of works/models.py, how many examples a call has, and the folder of its files."""

    model: str
    batch: int
    folder: str

    @property
    def title(self) -> str:
        """Name and batch: "ResNet50, batch 8"."""
        return f"{self.model}, batch {self.batch}"

    def program(self) -> ModelProgram:
        """The files, which may not be there yet."""
        return ModelProgram(self.model, self.batch, Path(self.folder))


@dataclass(frozen=True)
class ModelProgram:
    """The files of a model: its forms, the inputs of a call, and what TensorFlow returns for it.

    Inputs are called "input_0", "input_1" and so on, in the order in which TensorFlow flattens
    them, and outputs "output_0" and so on.
    """

    model: str
    batch: int
    folder: Path

    @property
    def saved_model(self) -> Path:
        """The folder of a SavedModel, whose weights are constants."""
        return self.folder / "saved_model"

    @property
    def onnx(self) -> bytes:
        """The model as ONNX. ValueError, with what was told, where it could not be converted."""
        if self._refusal.exists():
            raise ValueError(self._refusal.read_text(encoding="utf-8"))
        return (self.folder / "model.onnx").read_bytes()

    @property
    def _refusal(self) -> Path:
        return self.folder / "model.onnx.txt"

    def write_onnx(self, model: bytes | ValueError) -> None:
        """Hands out the model as ONNX, or why there is none."""
        if isinstance(model, ValueError):
            self._refusal.write_text(" ".join(str(model).split()), encoding="utf-8")
        else:
            (self.folder / "model.onnx").write_bytes(model)

    def write_call(self, inputs: Iterable[Array], outputs: Iterable[Array]) -> None:
        """Hands out the inputs of a call and what is expected of it."""
        for name, arrays in (("input", inputs), ("output", outputs)):
            named = {f"{name}_{place}": array for place, array in enumerate(arrays)}
            np.savez(self._call(name), allow_pickle=False, **named)

    @functools.cached_property
    def inputs(self) -> Mapping[str, Array]:
        """The inputs of the call."""
        return self._read("input")

    @functools.cached_property
    def outputs(self) -> Mapping[str, Array]:
        """What is expected of the call."""
        return self._read("output")

    def difference(self, results: Sequence[Array]) -> float:
        """How far results are from what is expected, in units of each output's largest value.

        ValueError when they have other shapes, or are further off than TOLERANCE.
        """
        apart = [0.0]
        for (name, expected), result in zip(self.outputs.items(), results, strict=True):
            if result.shape != expected.shape:
                raise ValueError(
                    f"{self.model}: {name} has shape {result.shape}, not {expected.shape}"
                )
            apart.append(np.abs(result - expected).max() / np.abs(expected).max())
        furthest = float(np.max(apart))  # NaN where there is one
        if not furthest < TOLERANCE:
            raise ValueError(f"{self.model}: the result is {furthest:.1g} away from TensorFlow's")
        return furthest

    def _call(self, name: str) -> Path:
        return self.folder / f"{name}s.npz"

    def _read(self, name: str) -> Mapping[str, Array]:
        with np.load(self._call(name)) as arrays:
            return dict(arrays)
