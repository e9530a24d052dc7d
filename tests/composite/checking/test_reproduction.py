"""A difference is saved as inputs and a script that compares that one call again."""

import re
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.checking import reproduction
from composite.checking.sample import Sample

_OP = """
import numpy as np
import tensorflow as tf
import composite

@composite.Composite(
    "Saved", inputs=["x: T"], derived_attrs=["T: {float, double}"], outputs=["y: T"]
)
def op(x):
    return x * x

@op.gradient
def wrong(call, upstream):
    return upstream * call.inputs[0] * 2.5

if __name__ == "__main__":
    report = composite.check(op, ways=["eager", "gradient"], raise_on_failure=False)
    print(report.difference.call)
    print(report.difference.folder)
"""


def test_inputs_are_kept_bit_for_bit(tmp_path):
    half = np.array([1.5, np.nan], tf.bfloat16.as_numpy_dtype)
    text = np.array([b"a", "é".encode()], dtype=object)
    inputs: tuple[Any, ...] = (
        [half, np.zeros([0, 2], np.int64)],
        np.float32(3) * np.ones([]),
        text,
        [],
        half == 1,
    )
    reproduction.write_inputs(tmp_path / "inputs.npz", Sample(inputs, {}))
    found = reproduction.read_inputs(tmp_path / "inputs.npz")
    assert [len(x) if isinstance(x, list) else None for x in found] == [2, None, None, 0, None]
    assert found[0][0].dtype == half.dtype
    assert found[0][0].tobytes() == half.tobytes()
    assert found[0][1].shape == (0, 2) and found[0][1].dtype == np.int64
    assert found[1].shape == () and found[1] == 3
    assert list(found[2]) == list(text)
    assert found[4].dtype == bool


def test_an_op_without_a_file_travels_in_the_script(tmp_path):
    @composite.Composite("SavedLocal", inputs=["x: float"], outputs=["y: float"])
    def op(x):
        return x * 2.0

    sample = Sample((np.ones(2, np.float32),), {})
    folder = reproduction.save(op, "eager", sample, tmp_path)
    script = (folder / "reproduce.py").read_text()
    assert folder.name == "SavedLocal-eager"
    assert '@composite.Composite("SavedLocal"' in script and "return x * 2.0" in script


@pytest.mark.slow
def test_the_script_shows_the_difference_again(tmp_path, run_python):
    first = run_python(_OP)
    call, folder = first.stdout.splitlines()[-2:]
    assert folder == ".composite/Saved-gradient"
    # hypothesis made the call small: one element, nothing special in it.
    assert call.startswith("float32[1] (seed")
    script = (tmp_path / folder / "reproduce.py").read_text()
    again = run_python(script.replace("Path(__file__).parent", f"Path({folder!r})"), check=False)
    assert again.returncode == 1
    assert re.search(r"CheckError: Saved \(snippet_0\.py:\d+\) differs", again.stderr)
    assert "way 'gradient'" in again.stderr
