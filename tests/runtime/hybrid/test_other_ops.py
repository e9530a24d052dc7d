"""Ops of another library in a module: in a loop, in Python and in a program without.

And resources of that library, whose initializers read files.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import hybrid
from tests.conftest import RunPython
from tests.runtime.hybrid import programs

pytestmark = pytest.mark.slow

CALLS = [["a", "bbb", "cc"], ["dddd"], ["", "e"]]
WEIGHTS = np.random.default_rng(2).standard_normal((16, 16)).astype(np.float32)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return programs.ops_library(tmp_path_factory.mktemp("ops"))


@pytest.fixture(scope="module")
def ops(library: Path) -> Any:
    return tf.load_op_library(str(library))


@pytest.fixture(scope="module")
def decoded(ops: Any) -> Any:
    """A loop that follows beams by the op, and the dense core of a model behind it."""

    def decode(words: Any) -> Any:
        count = tf.size(words)

        def step(i: Any, ids: Any) -> Any:
            return i + 1, ops.test_follow_parents(ids=ids, parents=(tf.range(count) + i) % count)

        _, ids = tf.while_loop(lambda i, _: i < count, step, (0, tf.strings.length(words)))
        h = tf.one_hot(ids % 16, 16)
        return tf.nn.softmax(tf.nn.gelu(tf.matmul(h, WEIGHTS) + 1.0))

    return decode


@pytest.fixture(scope="module")
def module(decoded: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = hybrid.compile(decoded, tf.TensorSpec([None], tf.string))
    assert made.report is not None
    assert (made.report.kernels, made.report.calls) == (1, 1)
    assert made.report.parts[0].ops["StatelessWhile"] == 1
    for words in CALLS:
        np.testing.assert_allclose(made(words), decoded(tf.constant(words)), rtol=1e-5)
    made.save(path := tmp_path_factory.mktemp("module") / "decode.so")
    return path


def test_errors_of_the_op_come_through(ops: Any) -> None:
    specs = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.int32)
    made = hybrid.compile(ops.test_follow_parents, *specs)
    assert made([5, 6], [1, 1]).numpy().tolist() == [6, 6]
    for parents, why in ([1], "not one parent for each id"), ([0, 2], "a parent that is no beam"):
        with pytest.raises(tf.errors.InvalidArgumentError, match=why):
            made([5, 6], parents)


def test_in_another_process(
    module: Path, library: Path, decoded: Any, run_python: RunPython
) -> None:
    code = f"""
import tensorflow as tf
from composite import hybrid
try:
    hybrid.load({str(module)!r})(["a"])
except tf.errors.FailedPreconditionError as error:
    print(error.message)
tf.load_op_library({str(library)!r})
module = hybrid.load({str(module)!r})
for words in {CALLS!r}:
    print(*module(words).numpy().ravel())
"""
    error, *lines = run_python(code).stdout.splitlines()
    assert error.startswith("the module runs TestFollowParents in TensorFlow, and this process")
    for line, words in zip(lines, CALLS, strict=True):
        wanted = decoded(tf.constant(words))
        np.testing.assert_allclose(np.array(line.split(), "f"), np.ravel(wanted), rtol=1e-5)


def test_in_a_program_without_python(
    module: Path, library: Path, decoded: Any, tmp_path: Path
) -> None:
    program = programs.words_program(tmp_path)
    output, errors = programs.called(program, module, 0, calls=CALLS[:1])
    assert output == ""
    assert errors.startswith("words: the module runs TestFollowParents in TensorFlow, and this")
    output, errors = programs.called(program, module, 0, library, calls=CALLS)
    assert errors == ""
    for line, words in zip(output.splitlines(), CALLS, strict=True):
        wanted = decoded(tf.constant(words))
        np.testing.assert_allclose(np.array(line.split(), "f"), np.ravel(wanted), rtol=1e-5)


class Words(tf.saved_model.experimental.TrackableResource):
    """The library's resource, filled once from a file."""

    def __init__(self, ops: Any, file: Path) -> None:
        super().__init__()
        self.ops, self.file = ops, tf.saved_model.Asset(str(file))
        self._initialize()

    def _create_resource(self) -> Any:
        return self.ops.test_word_set(shared_name="one name")

    def _initialize(self) -> None:
        self.ops.test_fill_word_set(words=self.resource_handle, file=self.file.asset_path)
        tf.print("filled", output_stream=sys.stderr)


@pytest.fixture(scope="module")
def known(ops: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Files of modules with a resource: of a function, and of a SavedModel; what they return."""
    folder = tmp_path_factory.mktemp("words")
    (folder / "words.txt").write_text("a\nbbb\n")
    model = tf.Module()
    model.words = Words(ops, folder / "words.txt")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def asked(text: Any) -> Any:
        has = ops.test_has_word(words=model.words.resource_handle, text=text)
        h = tf.one_hot(tf.cast(has, tf.int32) + 3, 16)
        return {"p": tf.nn.softmax(tf.nn.gelu(tf.matmul(h, WEIGHTS) + 1.0))}

    model.asked = asked
    tf.saved_model.save(model, str(folder / "m"), signatures={"serving_default": asked})
    paths = []
    for k, given in enumerate((asked, folder / "m")):
        made = hybrid.compile(given)
        assert made.report is not None
        assert (made.report.kernels, made.report.calls) == (1, 1)
        assert made.report.kept == ("a resource of TestWordSet",)
        made.save(folder / f"{k}.so")
        paths.append(folder / f"{k}.so")
    shutil.rmtree(folder / "m")
    (folder / "words.txt").unlink()
    return paths, [np.ravel(asked(tf.constant(words))["p"]) for words in CALLS]


def test_a_resource_is_made_anew_for_each_opened_module(
    known: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    paths, wanted = known
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    opened = [hybrid.load(path) for path in (*paths, paths[0])]
    assert capfd.readouterr().err.count("filled") == 3
    for module in opened:
        for words, y in zip(CALLS, wanted, strict=True):
            np.testing.assert_allclose(np.ravel(module(words)["p"]), y, rtol=1e-5)
    assert "filled" not in capfd.readouterr().err
    assert [*tmp_path.iterdir()] == []  # files are there while initializers run


def test_a_resource_in_a_program_without_python(
    known: Any, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = programs.words_program(tmp_path)
    (tmp_path / "files").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "files"))
    for path in known[0]:
        assert programs.called(program, path, 0, calls=CALLS)[1].startswith(
            "words: the module runs"
        )
        output, errors = programs.called(program, path, 0, library, calls=CALLS)
        assert errors == "filled\n"  # once for all calls
        for line, y in zip(output.splitlines(), known[1], strict=True):
            np.testing.assert_allclose(np.array(line.split(), "f"), y, rtol=1e-5)
    assert [*(tmp_path / "files").iterdir()] == []
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    assert (
        "temporary files (TMPDIR)"
        in programs.called(program, known[0][0], 0, library, calls=CALLS)[1]
    )
