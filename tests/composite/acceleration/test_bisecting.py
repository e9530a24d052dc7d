"""`composite.bisect`: which region is found, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner

import composite
from composite.acceleration import bisecting, comparing, tracing
from composite.cli.main import main
from composite.jit import worker
from composite.trials import results
from composite.trials.results import Deviation

X = tf.constant(np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4))


def layers(x: Any) -> Any:
    """Four different regions, with what none takes in between."""
    for scale in (1.0, 2.0, 3.0, 4.0):
        x = tf.math.lgamma(tf.abs(tf.tanh(x * scale)) + 1.0)
    return x


@pytest.fixture(autouse=True)
def _no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "start", lambda: None)


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many regions each trial had; from the third on, results are far."""
    found: list[int] = []
    traced = tracing.traced

    def counted(call: Any, name: str, *, known: Any = None) -> Any:
        function = traced(call, name, known=known)

        def run(*args: Any) -> Any:
            before = composite.stats()["regions"]
            result = function(*args)
            if formed := composite.stats()["regions"] - before:
                found.append(formed)
            return result

        run.get_concrete_function = function.get_concrete_function  # type: ignore[attr-defined]
        return run

    monkeypatch.setattr(comparing, "traced", counted)
    monkeypatch.setattr(bisecting, "traced", counted)
    monkeypatch.setattr(
        results, "deviation", lambda *_: Deviation(0, 0.5 if found[-1] != 2 else 0.0, 0.1)
    )
    return found


def test_the_first_that_differs(counts: list[int]) -> None:
    report = composite.bisect(layers, X)
    assert (report.regions, counts) == (4, [4, 2, 3, 1])
    assert report.region is not None
    assert report.region.ops == {"Abs": 1, "Tanh": 1, "Mul": 1, "AddV2": 1, "Const": 2}
    (scale, _) = (n for n in report.region.function.node_def if n.op == "Const")
    assert tf.make_ndarray(scale.attr["value"].tensor) == 3.0
    told = str(report).splitlines()
    assert told[0] == "layers, 4 regions: results within 0.5 of the largest |y|"
    assert told[1].startswith(f"region {report.region.name[-8:]} differs: ")
    assert told[2] == "with it alone output 0 is 0.5 away, 0.1 is allowed"


def test_none_differs() -> None:
    report = composite.bisect(layers, X)
    assert report.region is None
    assert str(report).splitlines()[1] == "no region differs: 0.001 is allowed"
    before = composite.stats()["regions"]
    with composite.options(regions=True):
        tf.function(layers)(X)
    assert composite.stats()["regions"] - before == 4  # all are formed again


def test_a_signature(tmp_path: Path) -> None:
    model = tf.Module()
    model.serve = tf.function(layers, input_signature=[tf.TensorSpec([None, 4], name="x")])
    tf.saved_model.save(model, str(tmp_path / "model"), model.serve)
    np.save(tmp_path / "x.npy", X.numpy())
    command = ["bisect", str(tmp_path / "model"), "--input", f"x={tmp_path / 'x.npy'}"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert done.output.startswith("serving_default, 4 regions: results within ")
    assert "no region differs" in done.output
    with pytest.raises(ValueError, match="has no signature other; it has serving_default"):
        composite.bisect(tmp_path / "model", signature="other")
    with pytest.raises(TypeError, match="takes a function or a model"):
        composite.bisect(3)  # type: ignore[arg-type]
