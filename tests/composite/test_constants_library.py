"""A built library has kernels for constant weights too, and for several CPU levels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import composite
from composite import prebuild, signatures
from composite.compiler.tvm.target import Target
from composite.records import CONSTANTS
from tests.composite.test_constants import K, N, dense

CALL = {"x": ("float32", ("rows", K)), "w": ("float32", (N, K), "constant"), "b": ("float32", (N,))}
LEVELS = ("x86-64-v2", "x86-64-v3")

pytestmark = pytest.mark.skipif(
    Target.host().isa < LEVELS[-1], reason=f"this machine has no {LEVELS[-1]} to build for"
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return composite.build(
        dense, tmp_path_factory.mktemp("built") / "lib", name="constants_lib",
        signatures={"dense": [CALL]}, targets=LEVELS,
    )  # fmt: skip


def test_a_record_says_which_inputs_are_constants() -> None:
    plain, packing = prebuild.requests(dense, CALL)
    assert CONSTANTS not in plain.attr
    assert list(packing.attr[CONSTANTS].list.i) == [1]
    line = signatures.recorded_line(packing)
    assert line is not None
    call = json.loads(line)["call"]
    assert call["w"] == ["float32", [N, K], "constant"]
    assert prebuild.requests(dense, call)[1].attr[CONSTANTS] == packing.attr[CONSTANTS]


@pytest.mark.parametrize("w", [("float32", (N, "k"), "constant"), ("float32", (2, 3), "constant")])
def test_what_the_runtime_never_packs_has_one_kernel(w: Any) -> None:
    x = ("float32", ("rows", w[1][1]))
    b = ("float32", w[1][:1], "constant")
    assert len(prebuild.requests(dense, {"x": x, "w": w, "b": b})) == 1


def test_another_word_is_an_error() -> None:
    with pytest.raises(TypeError, match=r'\(dtype, dims, "constant"\), not'):
        prebuild.requests(dense, CALL | {"w": ("float32", (N, K), "fixed")})


@pytest.mark.slow
def test_the_kernels_of_a_library(library: Path) -> None:
    kernels = json.loads((library / "manifest.json").read_text())["kernels"]
    weights = [kernel["shapes"].split(", ")[1] for kernel in kernels]
    assert [kernel["isa"] for kernel in kernels] == [LEVELS[0]] * 2 + [LEVELS[1]] * 2
    assert weights == ["80x96", "constant 80x96"] * 2


_SERVE = f"""
import sys
import numpy as np
import tensorflow as tf
import composite
dense = composite.load(sys.argv[1]).dense
random = np.random.default_rng(0)
x, w, b = (random.standard_normal(s).astype(np.float32) for s in ((24, {K}), ({N}, {K}), {N}))

def runs(call, *args, packed):
    before = composite.stats()
    with composite.options(backend="tvm"):
        step = tf.function(call, autograph=False)
        for _ in range(20):
            y = step(*args)
    np.testing.assert_allclose(y, np.maximum(x @ w.T + b, 0), rtol=1e-5, atol=1e-4)
    after = composite.stats()
    assert after["packed_constants"] - before["packed_constants"] == packed, after
    assert after["kernel_launches"] - before["kernel_launches"] == 20, after
    assert after["expansion_runs"] == before["expansion_runs"], after

runs(lambda x, w: dense(x, w, b), x, w, packed=0)
runs(lambda x: dense(x, tf.constant(w), b), x, packed=1)
weights, bias = tf.Variable(w), tf.Variable(b)
runs(lambda x: dense(x, weights, bias), x, packed=1)
told = composite.explain(dense, x, w, b)
print(told.kernel, told.reason)
"""


def served(run_python: Any, library: Path, env: Mapping[str, str]) -> str:
    return str(run_python(_SERVE, str(library), env=env).stdout)


def test_constants_are_packed_where_nothing_compiles(library: Path, run_python: Any) -> None:
    said = served(run_python, library, {"COMPOSITE_JIT": "0"})
    assert "_v3" in said
    assert "excludes" not in said


def test_a_lesser_level_serves_where_the_higher_is_excluded(library: Path, run_python: Any) -> None:
    said = served(run_python, library, {"COMPOSITE_JIT": "0", "COMPOSITE_ISA": LEVELS[0]})
    assert "_v2" in said
    assert "COMPOSITE_ISA=x86-64-v2 in the environment excludes that" in said
