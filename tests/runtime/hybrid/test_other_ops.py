"""Ops of another library in a module: in a loop, in Python and in a program without."""

from __future__ import annotations

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
except ValueError as error:
    print(error)
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
