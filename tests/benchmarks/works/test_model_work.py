"""The files of a model: what is written is read, and wrong results are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.works.model_work import ModelProgram, ModelWork


@pytest.fixture
def program(tmp_path: Path) -> ModelProgram:
    made = ModelWork("tagger", 8, str(tmp_path)).program()
    outputs = [np.array([[0.5, -4.0]], np.float32), np.array([1.0, 2.0], np.float32)]
    made.write_call([np.arange(3), np.ones([2, 1], np.float32)], outputs)
    return made


def test_a_call_is_read_as_it_was_written(program: ModelProgram) -> None:
    read = ModelWork("tagger", 8, str(program.folder)).program()
    assert list(read.inputs) == ["input_0", "input_1"]
    np.testing.assert_array_equal(read.inputs["input_0"], [0, 1, 2])
    assert list(read.outputs) == ["output_0", "output_1"]
    assert ModelWork("tagger", 8, "").title == "tagger, batch 8"


def test_results_are_held_against_the_largest_value_of_their_output(program: ModelProgram) -> None:
    right = [y.copy() for y in program.outputs.values()]
    assert program.difference(right) == 0
    right[0] += 0.001
    right[1] += 0.0001
    assert program.difference(right) == pytest.approx(0.001 / 4, rel=1e-3)


def test_wrong_results_are_refused(program: ModelProgram) -> None:
    first, second = program.outputs.values()
    with pytest.raises(ValueError, match="tagger: the result is 0.2 away from TensorFlow's"):
        program.difference([first, second + 0.4])
    with pytest.raises(ValueError, match="away"):
        program.difference([first * np.nan, second])
    with pytest.raises(ValueError, match=r"tagger: output_0 has shape \(2,\), not \(1, 2\)"):
        program.difference([first[0], second])
    with pytest.raises(ValueError, match="zip"):
        program.difference([first])


def test_onnx_or_why_there_is_none(program: ModelProgram) -> None:
    program.write_onnx(b"model")
    assert program.onnx == b"model"
    program.write_onnx(ValueError("no Op\n\nfor  Lgamma"))
    with pytest.raises(ValueError, match="^no Op for Lgamma$"):
        _ = program.onnx
