"""A built library has kernels for constant weights too, and for several CPU levels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import composite
from composite.aot import build_options, stated_calls
from composite.compiler.tvm.target import Target
from composite.kernels import produce, verdicts
from composite.kernels.verify import Accuracy
from composite.measuring.decisions import Decision, Point, Times
from tests.composite.ops.test_constants import K, N, dense

CALL = {"x": ("float32", ("rows", K)), "w": ("float32", (N, K), "constant"), "b": ("float32", (N,))}
LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
HOST = Target.host()

pytestmark = pytest.mark.skipif(
    HOST.isa < LEVELS[1], reason=f"this machine has no {LEVELS[1]} to build for"
)


def _trust_what_cannot_run(patch: pytest.MonkeyPatch) -> None:
    """As if a machine of the highest level built: what this one cannot run is not run."""
    check, measured = produce.check, verdicts.measured_library

    def checked(request: Any, kernel: Any, path: Path, **options: Any) -> Accuracy:
        if kernel.target.isa <= HOST.isa:
            return check(request, kernel, path, **options)
        return Accuracy(0.0, "", same_bits=False)

    def timed(made: Any, *others: Any) -> Decision:
        if made.isa <= HOST.isa:
            return measured(made, *others)
        return Decision(32, (Point(32, Times(1, 2, 0.5, 0.5, 0.5), kernel_wins=True),))

    targets = [build_options.BuildTarget(Target.of(level, HOST.cores)) for level in LEVELS]
    patch.setattr(build_options, "build_targets", lambda *_: targets)
    patch.setattr(produce, "check", checked)
    patch.setattr(verdicts, "measured_library", timed)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        _trust_what_cannot_run(patch)
        return composite.build(
            dense, tmp_path_factory.mktemp("built") / "lib", name="constants_lib",
            signatures={"dense": [CALL]}, targets=LEVELS,
        )  # fmt: skip


def test_a_call_says_which_inputs_are_constants() -> None:
    plain, packing = stated_calls.requests(dense, CALL)
    assert (plain.constants, packing.constants) == ((), (1,))


@pytest.mark.parametrize("w", [("float32", (N, "k"), "constant"), ("float32", (2, 3), "constant")])
def test_what_the_runtime_never_packs_has_one_kernel(w: Any) -> None:
    x = ("float32", ("rows", w[1][1]))
    b = ("float32", w[1][:1], "constant")
    assert len(stated_calls.requests(dense, {"x": x, "w": w, "b": b})) == 1


def test_another_word_is_an_error() -> None:
    with pytest.raises(TypeError, match=r'\(dtype, dims, "constant"\), not'):
        stated_calls.requests(dense, CALL | {"w": ("float32", (N, K), "fixed")})


@pytest.mark.slow
def test_the_kernels_of_a_library(library: Path) -> None:
    kernels = json.loads((library / "manifest.json").read_text())["kernels"]
    weights = [kernel["shapes"].split(", ")[1] for kernel in kernels]
    assert [kernel["isa"] for kernel in kernels] == [one for one in LEVELS for _ in range(2)]
    assert weights == ["80x96", "constant 80x96"] * 3


_SERVE = f"""
import sys
import numpy as np
import tensorflow as tf
import composite
from composite.binding import native
from composite.binding.records import record
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
print(told.kernel.rpartition("_")[2])
for level in {LEVELS}:
    made = record(op="ConstantsDense", name="another", _composite_program=dense.digest, _isa=level,
                  _in_shapes=[tf.TensorShape(s) for s in ((1, {K}), ({N}, {K}), {N})],
                  _out_shapes=["1,{N}"])
    try:
        native.call("composite_install", made)
    except tf.errors.OpError as error:
        print(error.message)
"""


def _answer(level: str, allowed: str) -> str:
    """What the runtime says to a kernel of a level, here none that there is."""
    if level > HOST.isa:
        return f"it was built for {level}, which this CPU does not have"
    if level > allowed:
        return f"it was built for {level}, and COMPOSITE_ISA={allowed} in the environment excludes"
    return "it names no library, and no kernel of that name is installed"


@pytest.mark.parametrize("allowed", [None, *LEVELS[:2]])
def test_the_best_level_serves_that_is_there_and_allowed(
    allowed: str | None, library: Path, run_python: Any
) -> None:
    env = {"COMPOSITE_JIT": "0"} | ({"COMPOSITE_ISA": allowed} if allowed else {})
    taken, *answers = run_python(_SERVE, str(library), env=env).stdout.splitlines()
    highest = allowed or LEVELS[-1]
    assert taken == min(highest, HOST.isa).rpartition("-")[2]
    for level, answer in zip(LEVELS, answers, strict=True):
        assert answer.startswith(f"kernel another was refused: {_answer(level, highest)}")
