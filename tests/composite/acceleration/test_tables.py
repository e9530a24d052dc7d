"""Models that begin with lookup tables and assets: as functions, Keras models and folders."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from tests.conftest import RunPython

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("kernels_win")]

WORDS = tf.constant(["cat", "dog", "the", "?"] * 4)


class Embedded(tf.Module):
    """Tables of all kinds, one of a file, in front of a dense core."""

    def __init__(self, words: Path) -> None:
        super().__init__()
        index, lookup = tf.lookup.TextFileIndex, tf.lookup.experimental
        read = tf.lookup.TextFileInitializer(
            str(words), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
        )
        self.table = tf.lookup.StaticVocabularyTable(read, 2)
        self.mutable = lookup.MutableHashTable(tf.string, tf.float32, 0.0)
        self.mutable.insert(["cat"], [0.5])
        self.dense = lookup.DenseHashTable(tf.string, tf.float32, 0.0, "", "-")
        self.dense.insert(["the"], [0.25])
        self.rows = tf.Variable(tf.random.stateless_normal([5, 32], [1, 2]))
        self.weights = tf.Variable(tf.random.stateless_normal([32, 32], [3, 4]))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def classify(self, text: Any) -> Any:
        h = tf.gather(self.rows, self.table.lookup(text))
        h = tf.nn.gelu(tf.matmul(h, self.weights) + 1.0)
        more = self.mutable.lookup(text) + self.dense.lookup(text)
        return {"p": tf.nn.softmax(h) + more[:, None]}


@pytest.fixture
def model(tmp_path: Path) -> Embedded:
    (tmp_path / "words.txt").write_text("the\ncat\nsat\n")
    return Embedded(tmp_path / "words.txt")


def test_functions(model: Embedded) -> None:
    fast = composite.accelerate(model.classify, WORDS, min_gain=0.0)
    assert "runs with regions" in fast.report.verdict
    np.testing.assert_allclose(fast(WORDS)["p"], model.classify(WORDS)["p"], rtol=1e-4)
    model.mutable.insert(["dog"], [4.0])  # tables stay the model's
    np.testing.assert_allclose(fast(WORDS)["p"], model.classify(WORDS)["p"], rtol=1e-4)


def test_keras_models(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("the\ncat\nsat\n")
    layers = tf.keras.layers
    words = tf.keras.Input((1,), dtype="string")
    lookup = layers.StringLookup(vocabulary=str(tmp_path / "words.txt"))
    h = layers.GlobalAveragePooling1D()(layers.Embedding(5, 32)(lookup(words)))
    h = layers.Dense(4, "softmax")(layers.Dense(32, "gelu")(h))
    model, x = tf.keras.Model(words, h), WORDS[:, None]
    fast = composite.accelerate(model, x, min_gain=0.0)
    assert "runs with regions" in fast.report.verdict
    np.testing.assert_allclose(fast(x), model(x), rtol=1e-4)


def test_folders(model: Embedded, tmp_path: Path, run_python: RunPython) -> None:
    signatures = {"serving_default": model.classify}
    tf.saved_model.save(model, str(tmp_path / "m"), signatures=signatures)
    wanted = model.classify(WORDS)["p"]
    report = composite.accelerate(
        tmp_path / "m", {"text": WORDS}, out=tmp_path / "made", min_gain=0.0
    )
    assert report.kernels
    shutil.move(tmp_path / "made", tmp_path / "out")  # assets are found from the folder
    shutil.rmtree(tmp_path / "m")
    (tmp_path / "words.txt").unlink()
    np.save(tmp_path / "wanted.npy", wanted)
    code = f"""
import numpy as np, tensorflow as tf, composite
text = tf.constant({WORDS.numpy().tolist()!r})
loaded = composite.load_model({str(tmp_path / "out")!r}, native_code=True)
y = loaded.signatures["serving_default"](text=text)["p"]
np.testing.assert_allclose(y, np.load({str(tmp_path / "wanted.npy")!r}), rtol=1e-4)
print(composite.stats()["kernel_launches"] > 0)
"""
    assert run_python(code).stdout.strip() == "True"
    plain = tf.saved_model.load(str(tmp_path / "out")).signatures["serving_default"]
    np.testing.assert_allclose(plain(text=WORDS)["p"], wanted, rtol=1e-4)
    module = composite.hybrid.compile(tmp_path / "out", {"text": WORDS})
    np.testing.assert_allclose(module(text=WORDS)["p"], wanted, rtol=1e-4)
