"""Invariant kernels: the bits of a row do not depend on its batch, its threads or its kernel."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler import tvm as backend
from tests.compiler.tvm.conftest import Compiler
from tests.invariance.bodies import BODIES, Body
from tests.invariance.comparing import ROWS, Kind, differences


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    return Compiler(tmp_path_factory.mktemp("kernels"))


FEW = (Kind(None), Kind(1), Kind(ROWS, packed=True))
"""Kinds of which each has loops of its own."""


LARGE = {"attention", "lstm"}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", [name for name in BODIES if name not in LARGE])
def test_rows_have_one_value(compiler: Compiler, name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert differences(compiler, BODIES[name](rng), rng, FEW) == []


@pytest.mark.parametrize("name", sorted(LARGE))
def test_rows_of_several_stages_have_one_value(compiler: Compiler, name: str) -> None:
    rng = np.random.default_rng(3)
    assert differences(compiler, BODIES[name](rng), rng, (Kind(None), Kind(1))) == []


def test_the_comparison_finds_kernels_that_are_not(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = lambda _: backend.Target.host()  # noqa: E731
    monkeypatch.setattr("tests.invariance.comparing.target", fast)
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((40, 600)).astype(np.float32) / 25
    body = Body(lambda x, w: tf.matmul(x, w, transpose_b=True), (600,), (weights,))
    assert differences(compiler, body, rng, FEW) != []
