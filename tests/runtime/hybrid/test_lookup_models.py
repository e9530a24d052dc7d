"""Strings, a lookup table, an embedding, a dense core: one model in all forms, at all places.

Each form is compiled to a module, which is called where it was compiled, in another process with
Python, and in a program without. The sources of the model, files of words among them, are gone by
then.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from composite import hybrid
from tests.conftest import RunPython
from tests.runtime.hybrid import programs

VOCABULARY = ["the", "cat", "sat", "on", "mat"]
Texts = list[list[str]]
LOOKED_UP: Texts = [["cat", "dog", "mat", "the"], ["on"], ["dog", "dog"], ["sat"] * 9]
SENTENCES: Texts = [["the cat sat", "A dog!"], ["mat"], ["", "on the  mat", "the THE the"]]

pytestmark = pytest.mark.slow


class Case(NamedTuple):
    """A model, as it is given to the compiler and as it is called.

    Attributes:
        given: what is compiled.
        called: the model, from a tensor of strings to probabilities.
        calls: the strings of some calls.
        columns: 1 if they are rows of one string, 0 if they are in one dim.
        source: a folder that the module must not need.
    """

    given: Any
    called: Callable[[Any], Any]
    calls: Texts
    columns: int
    source: Path | None = None

    def tensor(self, texts: list[str]) -> Any:
        return tf.constant(texts if self.columns == 0 else [[text] for text in texts])


class Embedded(tf.Module):
    """The model as TensorFlow's own code."""

    def __init__(self, words: Path) -> None:
        super().__init__()
        index = tf.lookup.TextFileIndex
        read = tf.lookup.TextFileInitializer(
            str(words), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
        )
        self.table = tf.lookup.StaticVocabularyTable(read, 2)
        self.rows = tf.Variable(tf.random.stateless_normal([len(VOCABULARY) + 2, 32], [1, 2]))
        self.weights = tf.Variable(tf.random.stateless_normal([32, 32], [3, 4]))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def classify(self, text: Any) -> Any:
        h = tf.matmul(tf.nn.embedding_lookup(self.rows, self.table.lookup(text)), self.weights)
        return {"p": tf.nn.softmax(tf.nn.gelu(h + 1.0))}


def function(folder: Path) -> Case:
    (folder / "words.txt").write_text("\n".join(VOCABULARY) + "\n")
    model = Embedded(folder / "words.txt")
    return Case(model.classify, lambda x: model.classify(x)["p"], LOOKED_UP, 0, folder)


def saved_model(folder: Path) -> Case:
    (folder / "words.txt").write_text("\n".join(VOCABULARY) + "\n")
    model = Embedded(folder / "words.txt")
    signatures = {"serving_default": model.classify}
    tf.saved_model.save(model, str(folder / "model"), signatures=signatures)
    assert list((folder / "model" / "assets").iterdir())
    called = tf.saved_model.load(str(folder / "model")).signatures["serving_default"]
    return Case(folder / "model", lambda x: called(x)["p"], LOOKED_UP, 0, folder)


def keras(lookup: Any, calls: Texts) -> Case:
    tf.keras.utils.set_random_seed(4)
    layers = tf.keras.layers
    words = tf.keras.Input((1,), dtype="string")
    h = layers.Embedding(len(VOCABULARY) + 3, 32)(lookup(words))
    h = layers.GlobalAveragePooling1D()(h)
    h = layers.LayerNormalization()(layers.Dense(32, "gelu")(h))
    model = tf.keras.Model(words, layers.Dense(4, "softmax")(h))
    return Case(model, model, calls, 1)


def string_lookup(folder: Path) -> Case:
    (folder / "words.txt").write_text("\n".join(VOCABULARY) + "\n")
    made = tf.keras.layers.StringLookup(vocabulary=str(folder / "words.txt"), num_oov_indices=2)
    return keras(made, LOOKED_UP)._replace(source=folder)


def text_vectorization(folder: Path) -> Case:
    made = tf.keras.layers.TextVectorization(
        ngrams=2, output_sequence_length=6, vocabulary=VOCABULARY
    )
    return keras(made, SENTENCES)


def tf_idf(folder: Path) -> Case:
    """Exported by Keras; without an embedding."""
    layers = tf.keras.layers
    lookup = layers.TextVectorization(
        output_mode="tf_idf",
        vocabulary=VOCABULARY,
        idf_weights=np.linspace(0.1, 0.9, len(VOCABULARY)),
        pad_to_max_tokens=True,
        max_tokens=16,
    )
    words = tf.keras.Input((1,), dtype="string")
    h = layers.LayerNormalization()(layers.Dense(32, "gelu")(lookup(words)))
    model = tf.keras.Model(words, layers.Dense(4, "softmax")(h))
    model.export(str(folder / "model"), verbose=False)
    return Case(folder / "model", model, SENTENCES, 1, folder)


FORMS = [function, saved_model, string_lookup, text_vectorization, tf_idf]


class Compiled(NamedTuple):
    """A case, its module, its file, and what the model returns."""

    case: Case
    module: hybrid.HybridModule
    path: Path
    wanted: list[Any]


@pytest.fixture(scope="module")
def all_compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Compiled]:
    return {form.__name__: compiled_form(form, tmp_path_factory) for form in FORMS}


def compiled_form(form: Callable[[Path], Case], folders: pytest.TempPathFactory) -> Compiled:
    case = form(folders.mktemp("source"))
    wanted = [np.asarray(case.called(case.tensor(texts))) for texts in case.calls]
    module = hybrid.compile(case.given)
    if case.source is not None:
        shutil.rmtree(case.source)
    module.save(path := folders.mktemp("module") / "model.so")
    return Compiled(case, module, path, wanted)


@pytest.fixture(params=[form.__name__ for form in FORMS])
def compiled(request: pytest.FixtureRequest, all_compiled: dict[str, Compiled]) -> Compiled:
    return all_compiled[request.param]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return programs.words_program(tmp_path_factory.mktemp("program"))


def numbers(lines: str, wanted: list[Any]) -> list[Any]:
    found = [np.array(line.split(), np.float32) for line in lines.splitlines()]
    return [y.reshape(z.shape) for y, z in zip(found, wanted, strict=True)]


def assert_close(found: list[Any], wanted: list[Any]) -> None:
    for y, z in zip(found, wanted, strict=True):
        np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-6)


def called(module: hybrid.HybridModule, x: Any) -> Any:
    """The only output, which has a name where the model gives it one."""
    return tf.nest.flatten(module(x))[0]


def test_where_it_was_compiled(compiled: Compiled) -> None:
    outputs = [called(compiled.module, compiled.case.tensor(x)) for x in compiled.case.calls]
    assert_close(outputs, compiled.wanted)
    report = compiled.module.report
    assert report is not None
    assert report.calls == 1  # of TensorFlow, in front
    assert report.kernels >= 1
    assert report.parts[0].where == "TensorFlow"
    assert report.parts[0].ops["LookupTableFindV2"] == 1
    assert not {"MatMul", "Softmax"} & set(report.parts[0].ops)
    assert len(report.kept) == 1


def test_in_another_process(all_compiled: dict[str, Compiled], run_python: RunPython) -> None:
    calls = {
        str(one.path): [one.case.tensor(texts).numpy().tolist() for texts in one.case.calls]
        for one in all_compiled.values()
    }
    code = f"""
import numpy as np
from composite import hybrid
for path, calls in {calls!r}.items():
    module = hybrid.load(path)
    for texts in calls:
        result = module(np.array(texts, object))
        result = next(iter(result.values())) if isinstance(result, dict) else result
        print(*result.numpy().ravel())
"""
    wanted = [y for one in all_compiled.values() for y in one.wanted]
    assert_close(numbers(run_python(code).stdout, wanted), wanted)


def test_in_a_program_without_python(compiled: Compiled, program: Path) -> None:
    case = compiled.case
    output, errors = programs.called(program, compiled.path, case.columns, calls=case.calls)
    assert errors == ""
    assert_close(numbers(output, compiled.wanted), compiled.wanted)
