"""examples/serving: a C program serves a model with a library, and no Python, TVM or MLIR."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from examples.digits import ops

ROOT = Path(__file__).resolve().parents[2]
INPUT, OUTPUT = "serving_default_x", "StatefulPartitionedCall"

pytestmark = pytest.mark.slow  # links against libtensorflow_cc, loads it in each process


class Model(tf.Module):
    """Two dense layers of digits/ops.py."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.layers = [
            (
                tf.Variable(random.standard_normal((n, k)).astype(np.float32)),
                tf.Variable(random.standard_normal(n).astype(np.float32)),
            )
            for k, n in ((64, 48), (48, 10))
        ]

    @tf.function(input_signature=[tf.TensorSpec([None, 64], name="x")])
    def __call__(self, x: Any) -> Any:
        """The logits of images [rows, 64]."""
        for w, b in self.layers:
            x = ops.fused_fully_connected(x, w, b, act="RELU")
        return x


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The program, the library, the model; images and Python's answer."""
    folder = tmp_path_factory.mktemp("serving")
    subprocess.run(
        ["make", "-C", str(ROOT / "examples" / "serving"), f"PYTHON={sys.executable}",
         f"OUT={folder}"],
        check=True, capture_output=True,
    )  # fmt: skip
    model = Model()
    tf.saved_model.save(model, str(folder / "model"))
    calls = [
        {
            "input_": ("float32", ("batch", w.shape[1])),
            "filter_": ("float32", tuple(w.shape)),
            "bias": ("float32", tuple(b.shape)),
            "act": "RELU",
        }
        for w, b in model.layers
    ]
    library = composite.build(
        ops.__file__, folder / "library", name="digits_ops",
        signatures={"fused_fully_connected": calls},
    )  # fmt: skip
    _prefer_kernels(library)
    x = np.random.default_rng(1).standard_normal((5, 64)).astype(np.float32)
    with composite.options(backend="tvm"):
        expected = x
        for w, b in model.layers:
            expected = ops.fused_fully_connected(expected, w, b, act="RELU")
    return folder / "serve", library, folder / "model", x, np.asarray(expected)


def _prefer_kernels(library: Path) -> None:
    """Say of each kernel that it was faster: which path is shown must not depend on the machine."""
    path = library / "timings.json"
    text = path.read_text().replace('"expansion"', '"kernel"').replace("false", "true")
    path.write_text(text)


def _text(x: Any) -> str:
    return " ".join(repr(float(number)) for number in x.ravel()) + "\n"


def test_the_program_answers_as_python_does(served: Any) -> None:
    program, library, model, x, expected = served
    with subprocess.Popen(
        [str(program), str(library), str(model), INPUT, OUTPUT],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        for rows in (5, 2):
            process.stdin.write(_text(x[:rows]))
            process.stdin.flush()
            found = np.array(process.stdout.readline().split(), np.float32).reshape(rows, 10)
            np.testing.assert_allclose(found, expected[:rows], rtol=1e-5, atol=1e-5)
        maps = Path(f"/proc/{process.pid}/maps").read_text()
        _, said = process.communicate()
    assert process.returncode == 0, said
    assert said.endswith("kernel_launches 4, expansion_runs 0\n"), said
    assert str(library / "libdigits_ops.so") in maps
    names = {Path(line.split()[-1]).name for line in maps.splitlines() if "/" in line}
    for word in ("tvm", "python", "mlir", "LLVM"):
        assert not [name for name in names if word in name], names


def _changed(library: Path, folder: Path, **changes: Any) -> Path:
    shutil.copytree(library, folder)
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


def test_what_is_wrong_is_said_in_one_sentence(served: Any, tmp_path: Path) -> None:
    program, library, model, *_ = served
    other = _changed(library, tmp_path / "other", tensorflow="2.20.0")
    cut = _changed(library, tmp_path / "cut")
    so = cut / "libdigits_ops.so"
    so.write_bytes(so.read_bytes()[:3000])
    for arguments, line, message in [
        ((tmp_path, model, INPUT, OUTPUT), "", "holds no built library: it has no manifest.json"),
        ((other, model, INPUT, OUTPUT), "", "was built for TensorFlow 2.20.0, but 2.21"),
        ((cut, model, INPUT, OUTPUT), "", "libdigits_ops.so is damaged: its SHA-256 is"),
        ((library, tmp_path / "none", INPUT, OUTPUT), "", "cannot load the model: "),
        ((library, model, "nothing", OUTPUT), "", "nothing: the model has no op of that name"),
        ((library, model, INPUT, OUTPUT), "1 2 3\n", "a line: it is not whole rows of numbers"),
    ]:
        done = subprocess.run(
            [str(program), *map(str, arguments)],
            input=line, capture_output=True, text=True, check=False, timeout=120,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )  # fmt: skip
        assert done.returncode == 1, done
        assert done.stdout == ""
        said = [text for text in done.stderr.splitlines() if text.startswith("serve: ")]
        assert len(said) == 1, done.stderr
        assert message in said[0]
