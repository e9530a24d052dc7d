"""Kernels for GPUs to be run on the stand-in for one: what they compute, for which shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import tensorflow as tf

from composite.compiler.tvm.cuda import build
from composite.compiler.tvm.cuda.build import CudaKernel, write_cuda
from composite.compiler.tvm.target import CudaTarget
from composite.ops import functions
from composite.reference import over_ring
from tests.compiler.tvm import standing
from tests.compiler.tvm.conftest import library_of
from tests.gpu.shim.emulator import MULTIPROCESSORS, Emulator, as_float64

BFLOAT16 = ml_dtypes.bfloat16
EPSILON = {np.dtype(d): float(ml_dtypes.finfo(d).eps) for d in (np.float16, BFLOAT16)}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, 1.0, -1.0]


@dataclass(frozen=True)
class Case:
    """A function of arrays that has a kernel.

    Attributes:
        function: From tensors to tensors.
        shapes: Of the inputs, symbols among them.
        dtypes: Of the inputs; one stands for all.
        runs: Sizes of the symbols, a run each.
        strategy: What is to write it; any strategies if it is empty.
        rtol: Of float32 and float64; 16-bit floats have one rounding of their own.
        atol: The same.
        special: Whether inputs hold infinities, NaN and subnormal numbers.
        scale: What ordinary numbers are multiplied by.
        launches: How many it takes; any number if it is None.
        choices: Values of knobs.
        tensor_float_32: Whether float32 may be multiplied as TF32.
        multiprocessors: How many the GPU has, a run each.
        level: That of the GPU.
        rounded: The function as it is judged, where a kernel rounds on the way as TensorFlow: from
            tensors of float64 and the dtype that it rounds to.
    """

    function: Callable[..., Any]
    shapes: Sequence[Sequence[int | str]]
    strategy: str
    dtypes: Sequence[Any] = (np.float32,)
    runs: Sequence[Mapping[str, int]] = ({},)
    rtol: float = 2e-6
    atol: float = 2e-6
    special: bool = False
    scale: float = 1.0
    launches: int | None = 1
    choices: Mapping[str, Any] = field(default_factory=dict)
    tensor_float_32: bool = False
    multiprocessors: Sequence[int] = (MULTIPROCESSORS,)
    level: str = "sm_80"
    rounded: Callable[..., Any] | None = None

    def input_dtypes(self) -> list[np.dtype]:
        """One an input."""
        several = [*self.dtypes] if len(self.dtypes) > 1 else [*self.dtypes] * len(self.shapes)
        return [np.dtype(d) for d in several]

    def arrays(self, run: Mapping[str, int]) -> list[np.ndarray]:
        """The inputs of a run."""
        made = []
        for number, (shape, dtype) in enumerate(zip(self.shapes, self.input_dtypes(), strict=True)):
            sizes = [run[d] if isinstance(d, str) else d for d in shape]
            numbers = _numbers(number, sizes, dtype, special=self.special)
            made.append(numbers if self.scale == 1 else (numbers * self.scale).astype(dtype))
        return made


def _numbers(seed: int, shape: Sequence[int], dtype: np.dtype, *, special: bool) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.random(shape) < 0.7
    if dtype.kind in "iu":
        least = np.iinfo(dtype).min if special else (-99 if dtype.kind == "i" else 0)
        most = np.iinfo(dtype).max if special else 99
        return rng.integers(least, most, shape, dtype)
    array = rng.standard_normal(shape) * (30 if special else 1)
    if special:
        flat = array.reshape(-1)
        flat[: len(SPECIAL)] = np.roll(SPECIAL, seed)[: flat.size]
    return array.astype(dtype)


class Kernels(Mapping[str, CudaKernel]):
    """The kernels of cases by name, each written when it is first asked for."""

    def __init__(self, cases: Mapping[str, Case]) -> None:
        self._cases = cases
        self._written: dict[str, CudaKernel] = {}

    def __getitem__(self, name: str) -> CudaKernel:
        if name not in self._written:
            self._written[name] = written(name, self._cases[name])
        return self._written[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cases)

    def __len__(self) -> int:
        return len(self._cases)


class Batch:
    """Cases by name, compiled together, and the kernels of them and others."""

    def __init__(self, cases: Mapping[str, Case], kernels: Kernels, folder: Path) -> None:
        self.cases = cases
        self.kernels = kernels
        self.emulator = Emulator([kernels[name] for name in cases], folder)

    def check(self, name: str) -> None:
        """Run a case, threads in either order, and compare with TensorFlow in float64."""
        case, kernel = self.cases[name], self.kernels[name]
        assert case.strategy in ("", kernel.strategy)
        assert case.launches in (None, len(kernel.plan.launches))
        for run in case.runs:
            arrays = case.arrays(run)
            types = [
                np.asarray(r).dtype
                for r in tf.nest.flatten(case.function(*map(tf.constant, arrays)))
            ]
            results, *others = (
                self.emulator.run(
                    kernel, arrays, case.shapes, types, reverse=reverse, multiprocessors=count
                )
                for count in case.multiprocessors
                for reverse in (False, True)
            )
            exact = [tf.constant(as_float64(a)) for a in arrays]
            rounded = case.rounded and case.rounded(*exact, dtype=arrays[0].dtype)
            wanted = tf.nest.flatten(rounded or case.function(*exact))
            for other in others:  # neither the order of threads nor the number of blocks matters
                assert [x.tobytes() for x in results] == [x.tobytes() for x in other]
            for result, want in zip(results, wanted, strict=True):
                compare(result, np.asarray(want), case)


class RingBatch:
    """Cases by name over the ring, where a kernel is equal to its function bit for bit."""

    def __init__(self, cases: Mapping[str, Case], folder: Path) -> None:
        self.cases = cases
        self.kernels = {name: written(name, case, in_ring=True) for name, case in cases.items()}
        self.emulator = Emulator([*self.kernels.values()], folder, over_ring=True)

    def differences(self, name: str) -> list[str]:
        """Where a kernel is not its function; NotCovered where an op has no meaning there."""
        case, kernel = self.cases[name], self.kernels[name]
        found = []
        for run in case.runs:
            random = np.random.default_rng(0)
            arrays = [over_ring.drawn(a, random) for a in case.arrays(run)]
            wanted = over_ring.results(functions.body(library_for(case)), arrays)
            results = self.emulator.run(kernel, arrays, case.shapes, [y.dtype for y in wanted])
            for number, pair in enumerate(zip(results, wanted, strict=True)):
                if told := over_ring.difference(*pair):
                    found.append(f"{name} of {dict(run)}, result {number}: {told}")
        return found


def compare(result: np.ndarray, want: np.ndarray, case: Case) -> None:
    """A kernel's result against the exact one."""
    assert result.shape == want.shape
    if result.dtype.kind in "iub":
        np.testing.assert_array_equal(result, want)
        return
    rounding = EPSILON.get(result.dtype, 0.0)
    with np.errstate(over="ignore"):  # to infinity, as the kernel's
        want = want.astype(result.dtype)
    np.testing.assert_allclose(
        as_float64(result),
        as_float64(want),
        rtol=case.rtol + rounding,
        atol=case.atol + rounding / 8,
    )


def library_for(case: Case) -> Any:
    """The function of a case, as TensorFlow has it."""
    specs = [
        tf.TensorSpec([d if isinstance(d, int) else None for d in shape], dtype)
        for shape, dtype in zip(case.shapes, case.input_dtypes(), strict=True)
    ]
    return library_of(tf.autograph.experimental.do_not_convert(case.function), specs)


def written(name: str, case: Case, *, in_ring: bool = False) -> CudaKernel:
    """The kernel of a case."""
    level = CudaTarget.level(case.level, tensor_float_32=case.tensor_float_32)
    library = library_for(case)
    with mock.patch.object(build._Writing, "_function", _in_ring) if in_ring else nullcontext():
        return write_cuda(library, case.shapes, target=level, name=name, choices=case.choices)


_FUNCTION = build._Writing._function


def _in_ring(writing: Any, body: Any) -> Any:
    """The function of a launch over the ring."""
    return _FUNCTION(writing, standing.over_ring(body, writing._block.stand_ins))
