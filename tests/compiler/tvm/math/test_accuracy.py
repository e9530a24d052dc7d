"""A sample of `make exhaustive`: the functions of kernels are as the table of bounds says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from composite.compiler.tvm.math.accuracy import BOUNDS
from tests.exhaustive import confirm, conversions, kernels, records, sampled, sweep
from tests.exhaustive.functions import FUNCTIONS, PAIRS

pytestmark = pytest.mark.many_cases
ZERO, ONE, INFINITY = (
    int(x.view(np.uint32)) // sweep.CHUNK for x in np.array([0, 1, np.inf], np.float32)
)
BELOW = sweep.CHUNKS // 2
"""Where the numbers with a sign begin."""
CHUNKS = (ZERO, ONE - 1, ONE, INFINITY, BELOW, BELOW + ONE, sweep.CHUNKS - 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BOUNDS)
def test_samples(name: str, dtype: str, tmp_path: Path) -> None:
    """At each level of this machine, on threads that flush denormals and on others."""
    function = (FUNCTIONS | PAIRS)[name]
    levels = [level for level in kernels.levels() if not function.fused or level != "x86-64-v2"]
    found = sampled.tested(function, dtype, levels, tmp_path, (1, 4))
    assert records.faults(name, dtype, found) == []


@pytest.mark.parametrize("name", ["tanh", "log"])
def test_the_sweep(name: str, tmp_path: Path) -> None:
    ways = sweep.Ways.of(FUNCTIONS[name], kernels.levels(), tmp_path)
    found = sweep.swept(ways, CHUNKS)
    assert records.faults(name, "float32", found) == []
    assert found["TensorFlow"].error > 0


def test_the_sweep_finds_what_is_wrong(tmp_path: Path) -> None:
    """A result that is off, one out of range, a step back, a zero of the wrong sign."""
    ways = sweep.Ways.of(FUNCTIONS["tanh"], ["x86-64-v2"], tmp_path)
    right = ways.kernels["x86-64-v2"]
    first = np.uint32(ONE * sweep.CHUNK).view(np.float32)

    def wrong(x: np.ndarray, results: np.ndarray) -> None:
        right(x, results)
        results[x == first] = 1.5

    ways.kernels["x86-64-v2"] = wrong
    ways.tensorflow = None
    found = sweep.swept(ways, [ONE])["x86-64-v2"]
    assert found.error > 1e6 and found.error_at == first == found.outside_at == found.back_at
    assert (found.outside, found.back) == (1, 1)
    ways.kernels["x86-64-v2"] = lambda x, results: right(np.abs(x), results)
    assert sweep.swept(ways, [BELOW])["x86-64-v2"].signs > 0


@pytest.mark.parametrize("dtype", conversions.NARROW)
def test_rounding(dtype: str, tmp_path: Path) -> None:
    made = conversions.Rounding(dtype).kernels(kernels.levels(), tmp_path)
    found = conversions.swept(dtype, made, CHUNKS)
    assert {level: one.outside for level, one in found.items()} == dict.fromkeys(found, 0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_results_are_held_against_is_confirmed(name: str) -> None:
    places = confirm.worst_inputs(
        one for levels in records.read()[name].values() for one in levels.values()
    )
    assert confirm.disagreements(FUNCTIONS[name], places) == []
    assert confirm.deviations(FUNCTIONS[name], 1, 4) == []
