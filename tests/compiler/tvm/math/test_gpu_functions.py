"""Elementary functions in CUDA, on the stand-in for a GPU: they are within the bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.exhaustive import numbers, records, sampled
from tests.exhaustive.functions import FUNCTIONS
from tests.gpu.shim.cases import Case, written
from tests.gpu.shim.emulator import Emulator


@pytest.mark.slow
def test_errors(tmp_path: Path) -> None:
    """Where they call libm, a GPU has functions of CUDA's own."""
    tested = {name: one for name, one in FUNCTIONS.items() if one.op is not None}
    (x,) = sampled.inputs(FUNCTIONS["tanh"], "float32", 2, 4)
    made = {
        name: written(name, Case(one.op, [[x.size]], "elementwise"))
        for name, one in tested.items()
        if one.op is not None
    }
    emulator = Emulator([*made.values()], tmp_path)
    faults = []
    for name, kernel in made.items():
        exact = numbers.exactly(tested[name].exact, [x])
        (results,) = emulator.run(kernel, [x], [[x.size]], [np.dtype(np.float32)])
        found = sampled.judged(
            tested[name], [x], results, exact[0], numbers.errors(results, *exact)
        )
        faults += records.faults(name, "float32", {"cuda": found})
    assert faults == []
