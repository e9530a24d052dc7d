"""`composite.accelerate` of a SavedModel: which signatures change, and what stays."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner

import composite
from composite.acceleration import comparing
from composite.cli.main import main
from composite.jit import worker

FLOATS = tf.TensorSpec([None, 4], tf.float32, name="x")


@pytest.fixture(autouse=True)
def _is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regions are said to be faster, and no kernel is asked for."""
    monkeypatch.setattr(worker, "start", lambda: None)
    monkeypatch.setattr(comparing, "times", lambda functions, *_: [2e-3, 1e-3])


class Model(tf.Module):
    """Two heads on one weight, and two signatures that keep their functions."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = tf.Variable(np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4))

    @tf.function(input_signature=[FLOATS])
    def serve(self, x: Any) -> dict[str, Any]:
        y = tf.nn.gelu(tf.matmul(x, self.weight) + 1.0)
        return {"y": y, "p": tf.nn.softmax(y)}

    @tf.function(input_signature=[FLOATS])
    def last(self, x: Any) -> dict[str, Any]:
        return {"y": tf.tanh(tf.matmul(x, self.weight)) * 2.0}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def lengths(self, text: Any) -> dict[str, Any]:
        return {"n": tf.strings.length(text)}

    @tf.function(input_signature=[FLOATS])
    def plain(self, x: Any) -> dict[str, Any]:
        return {"y": tf.math.lgamma(x)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = Model()
    signatures = {"serving_default": model.serve} | {
        name: getattr(model, name) for name in ("last", "lengths", "plain")
    }
    tf.saved_model.save(model, str(tmp_path / "model"), signatures)
    return tmp_path / "model"


def regions_of(call: Callable[[], Any]) -> tuple[Any, int]:
    before = composite.stats()
    result = call()
    return result, (composite.stats() - before)["regions"]


def test_signatures_get_regions(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "fast"
    report = composite.accelerate(folder, out=out, size=3, deny=["Softmax"])
    assert report.signatures["serving_default"].partition.outside == {"Softmax": 1}
    assert sorted(report.signatures) == ["last", "plain", "serving_default"]
    assert all(report.signatures[name].is_gain for name in ("last", "serving_default"))
    assert not report.signatures["plain"].is_gain
    assert report.left_out == {
        "lengths": "values of input text cannot be drawn, they are string: give them"
    }
    x = tf.constant(np.linspace(-2, 2, 8, dtype=np.float32).reshape(2, 4))
    wanted = tf.saved_model.load(str(folder)).signatures
    found = tf.saved_model.load(str(out))
    assert sorted(found.signatures) == sorted(wanted)
    for name in ("serving_default", "last"):
        result, count = regions_of(lambda name=name: found.signatures[name](x=x))  # type: ignore[misc]
        assert count >= 1
        for key, value in wanted[name](x=x).items():
            np.testing.assert_allclose(result[key], value, rtol=1e-5, atol=1e-6)
    for name, inputs in (("plain", {"x": x}), ("lengths", {"text": tf.constant(["a"])})):
        assert regions_of(lambda n=name, i=inputs: found.signatures[n](**i))[1] == 0  # type: ignore[misc]
    assert regions_of(lambda: found.serve(x))[1] == 0  # what is no signature stays, too

    again = composite.accelerate(out, out=out)
    assert again.left_out["last"] == "it has regions already"
    assert regions_of(lambda: tf.saved_model.load(str(out)).signatures["last"](x=x))[1] >= 1


def test_a_session_has_them_and_the_files_stay(folder: Path, tmp_path: Path) -> None:
    out, page, array = tmp_path / "fast", tmp_path / "report.html", tmp_path / "x.npy"
    np.save(array, np.ones([2, 4], np.float32))
    arguments = [folder, "-o", out, "--signature", "last", "--input", f"x={array}", "--html", page]
    done = CliRunner().invoke(main, ["accelerate", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    assert "last: runs with regions, 2.00 times as fast" in done.output
    assert "serving_default" not in done.output
    assert done.output.splitlines()[-1] == str(out)
    assert "2.00 times as fast" in page.read_text(encoding="utf-8")
    for file in (folder / "variables").iterdir():
        assert (out / "variables" / file.name).read_bytes() == file.read_bytes()

    (wanted, none), (found, some) = (regions_of(lambda f=f: in_a_session(f)) for f in (folder, out))  # type: ignore[misc]
    assert (none, some) == (0, 1)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def in_a_session(folder: Path) -> Any:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.load(session, ["serve"], str(folder)).signature_def["last"]
        feeds = {signature.inputs["x"].name: np.ones([2, 4], np.float32)}
        return session.run(signature.outputs["y"].name, feeds)


def test_a_graph_without_functions_is_left_alone(tmp_path: Path) -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        v1.saved_model.simple_save(
            session, str(tmp_path / "old"), {"x": x}, {"y": tf.nn.relu(x + 1.0) * 2.0}
        )
    report = composite.accelerate(tmp_path / "old", out=tmp_path / "new")
    assert "no function, as TF1 saves" in report.left_out["serving_default"]
    assert "serving_default: runs the original: it is nodes" in str(report)
    assert tf.saved_model.load(str(tmp_path / "new")).signatures["serving_default"]


def test_wrong_arguments(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    wrong: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        ((folder,), {}, TypeError, "needs out="),
        ((tmp_path / "no",), {"out": out}, FileNotFoundError, "is no SavedModel"),
        ((folder, 3), {"out": out}, TypeError, "are one dict"),
        ((folder, {"z": 3}), {"out": out}, ValueError, "no signature has an input z"),
        ((folder,), {"out": out, "signatures": ["other"]}, ValueError, "has no signature other"),
        ((tf.nn.relu, 3.0), {"out": out}, TypeError, "are for the folder of a SavedModel"),
    ]
    for arguments, named, kind, text in wrong:
        with pytest.raises(kind, match=re.escape(text)):
            composite.accelerate(*arguments, **named)
    assert not out.exists()
    done = CliRunner().invoke(main, ["accelerate", str(folder), "-o", str(out), "--input", "x"])
    assert (done.exit_code, "is not NAME=FILE.npy" in done.output) == (2, True)
