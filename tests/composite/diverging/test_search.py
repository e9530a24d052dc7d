"""Where two ways to run an op part: each kind of ways finds the line that was written to differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner

import composite
from composite.cli.main import main
from composite.diverging import kernel_cuts
from composite.diverging.deviation import Deviation
from composite.ops import function_op, functions
from composite.reference import evaluate
from tests.composite.diverging import diverging_ops as ops
from tests.conftest import RunPython

FILE = Path(ops.__file__)
APART = Deviation((0,), 0.0, 1.0, 1.0, 0.0)
X = np.linspace(-2, 2, 12, dtype=np.float32)
FAR = (1000 + np.linspace(0, 1, 32, dtype=np.float32)).reshape(2, 16)


def line_of(text: str) -> str:
    lines = FILE.read_text().splitlines()
    return f"{FILE.name}:{next(i for i, line in enumerate(lines, 1) if text in line)}"


def test_the_line_that_cancels_in_float32() -> None:
    report = composite.diverge(ops.variance, FAR)
    found = report.divergence
    assert found is not None and not report.ok
    assert line_of("spread = squares") in found.place
    assert found.line == "spread = squares - mean * mean"
    assert (found.op, found.dtype, found.shape) == ("Sub", "float32", (2,))
    wide = FAR.astype(np.float64)
    exact = (wide * wide).mean(-1) - wide.mean(-1) ** 2
    assert found.first == pytest.approx(exact[found.at], rel=1e-9)
    assert found.second != pytest.approx(exact[found.at], rel=1e-2)
    assert found.error > found.bound == pytest.approx(np.finfo(np.float32).eps ** 0.5)
    assert found.inherited < 1e-6
    assert "spread = squares - mean * mean" in str(report)
    assert composite.diverge(ops.variance, FAR, ways=("float64", "float32"), rtol=5).ok


def test_a_device_is_held_to_what_a_kernel_may_be_off() -> None:
    report = composite.diverge(ops.variance, FAR, ways=("CPU:0", "expansion"))
    assert report.ok and report.compared == 7


def test_a_loop_says_in_which_iteration() -> None:
    assert composite.diverge(ops.smooth, X, np.int32(3)).ok
    report = composite.diverge(ops.smooth, X, np.int32(3), ways=("float32", "bfloat16"), rtol=5e-3)
    assert report.divergence is not None
    assert line_of("y = y * 0.5") in report.divergence.place
    assert report.divergence.node.split("/")[2] in "012"


def test_a_gradient_has_the_lines_of_the_forward() -> None:
    report = composite.diverge(
        ops.steep, np.array([1e-3, 0.5], np.float32), gradient=True, rtol=1e-3
    )
    assert report.divergence is not None
    assert line_of("tf.sqrt(shifted)") in report.divergence.place
    assert report.name == "the gradient of DivergingSteep"


class Step:
    """A step of training, whose optimizer keeps state."""

    def __init__(self) -> None:
        self.w = tf.Variable(tf.ones([16]))
        self.optimizer = tf.keras.optimizers.SGD(0.5, momentum=0.9)
        self.optimizer.build([self.w])

    def __call__(self, x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(ops.chain(x * self.w))
        self.optimizer.apply([tape.gradient(loss, self.w)], [self.w])
        moved = self.w - 1.0
        return tf.reduce_sum(1.0 / (1.0 + moved * 1e-8 - 1.0))


def test_a_step_of_training_changes_nothing() -> None:
    step = Step()
    report = composite.diverge(step, np.linspace(0, 1, 16, dtype=np.float32))
    assert report.divergence is not None
    lines = Path(__file__).read_text().splitlines()
    cancels = next(i for i, line in enumerate(lines, 1) if "moved * 1e-8" in line)
    assert f"{Path(__file__).name}:{cancels}" in report.divergence.place
    np.testing.assert_array_equal(step.w, np.ones(16))
    assert int(step.optimizer.iterations) == 0


def test_drawn_calls() -> None:
    report = composite.diverge(ops.chain, samples=4)
    assert report.ok and report.calls == 4


def test_kernels_of_a_call_and_of_its_gradient() -> None:
    report = composite.diverge(ops.chain, X, ways=("kernel", "expansion"), gradient=True)
    # Its value, that and a factor of the forward that keeps it, and the gradient.
    assert report.ok and report.compared == 4
    report = composite.diverge(ops.uncovered, X, ways=("expansion", "kernel"))
    assert not report.ok and report.divergence is None
    assert any("Lgamma is not in the kernel table" in note for note in report.notes)


def test_the_cut_at_which_a_kernel_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def wrong(library: Any, inputs: Any, _: int, __: Any) -> list[Any]:
        """What a kernel would give that takes Add for Sub."""
        made.append(len(inputs))
        body = functions.body(library)
        for node in body.graph_def.node:
            if node.op == "AddV2":
                node.op = "Sub"
        return evaluate.evaluate(body, [x.numpy() for x in inputs])

    def whole(self: Any) -> Any:
        library = self._library
        found = wrong(library, self._call.inputs, 0, {})
        return self._compare(self._call.results[0].numpy(), found[0].numpy(), self._exact[""][0])

    monkeypatch.setattr(function_op, "invoke", wrong)
    monkeypatch.setattr(kernel_cuts._Composite, "whole", whole)
    report = composite.diverge(ops.chain, X, ways=("expansion", "kernel"))
    assert report.divergence is not None
    assert report.divergence.line == "b = a + 1.0"
    assert report.divergence.error > report.divergence.bound
    assert len(made) <= 4


def test_kernels_that_agree_at_each_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prefixes are compiled and run; told that the whole is wrong, the search says so."""
    monkeypatch.setattr(kernel_cuts._Composite, "whole", lambda _: APART)
    report = composite.diverge(ops.chain, X, ways=("expansion", "kernel"))
    assert report.divergence is not None and report.divergence.op == "PartitionedCall"
    assert "no kernel of a prefix differs, only that of the whole" in report.notes
    assert report.compared >= 3


OTHER = """
import tensorflow as tf
from composite import Composite

@Composite("DivergingUncovered", inputs=["x: float"], outputs=["y: float"])
def uncovered(x):
    halved = 0.5 * x
    return tf.math.lgamma(x) * 2.0 + halved * 0.01
"""


def test_another_version_in_a_library(tmp_path: Path, run_python: RunPython) -> None:
    source = tmp_path / "versions.py"
    source.write_text(OTHER)
    code = "import sys, composite; composite.build(sys.argv[1], sys.argv[2], name='other')"
    run_python(code, str(source), str(tmp_path / "lib"))
    ways = ("expansion", tmp_path / "lib")
    report = composite.diverge(ops.uncovered, X + 3.5, ways=ways)
    assert report.divergence is not None
    assert report.divergence.line == "return grown * 2.0"
    assert report.divergence.error > report.divergence.bound
    assert report.notes[0].startswith("the other body computes otherwise at ")
    assert "versions.py:7" in report.notes[0]
    with pytest.raises(ValueError, match=r"lib has no op DivergingChain, but DivergingUncovered"):
        composite.diverge(ops.chain, X, ways=ways)


def test_the_command() -> None:
    run = CliRunner()
    call = ["diverge", f"{FILE}:variance", "--shape", "x=4,16", "--json"]
    done = run.invoke(main, call)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["ok"] is True
    done = run.invoke(main, [*call, "--way", "float64", "bfloat16", "--rtol", "1e-3"])
    assert done.exit_code == 3
    said = json.loads(done.stdout)["divergence"]
    assert FILE.name in said["place"] and said["error"] > said["bound"]


def test_what_is_no_pair_of_ways() -> None:
    for ways, message in (
        (("float64", "float16x"), "'float16x' is no way"),
        (("float64", "kernel"), "'expansion' alone can be beside a kernel"),
        ("float64", "ways are two"),
    ):
        with pytest.raises(ValueError, match=message):
            composite.diverge(ops.chain, X, ways=ways)
