"""Kernels inside a model that `composite.accelerate` wrote: who runs them, and from which files."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDef
from tensorflow.core.framework.graph_pb2 import GraphDef

import composite
from composite.acceleration import comparing
from composite.saving import contents, region_kernels
from tests.conftest import RunPython
from tests.unmeasured import kernels_serve


class Model(tf.Module):
    """A region on each side of a cast that no kernel covers."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = tf.Variable(np.linspace(-1, 1, 1024, dtype=np.float32).reshape(32, 32))

    @tf.function(input_signature=[tf.TensorSpec([None, 32], tf.float32, name="x")])
    def serve(self, x: Any) -> dict[str, Any]:
        whole = tf.cast(tf.abs(tf.tanh(tf.matmul(x, self.weight)) * 9.0), tf.uint32)
        return {"y": tf.cast(whole, tf.float32) * 0.5 + 1.0}


@pytest.fixture(scope="module")
def fast(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an accelerated model, beside what it computes of some batches."""
    folder = tmp_path_factory.mktemp("models")
    model = Model()
    tf.saved_model.save(model, str(folder / "model"), {"serving_default": model.serve})
    with pytest.MonkeyPatch.context() as patch, kernels_serve():
        patch.setattr(comparing, "times", lambda functions, *_: [2e-3, 1e-3])
        report = composite.accelerate(folder / "model", out=folder / "fast")
    (signature,) = report.signatures.values()
    assert len(signature.partition.regions) == 2
    assert signature.partition.outside == {"Cast": 1}
    # Both for the size that was drawn, for any batch, and for a batch of one; and the one that has
    # a weight once more, for the calls in which that rests.
    assert report.kernels == 2 * 3 + 3
    assert "9 kernels inside: composite.load_model(..., native_code=True)" in str(report)
    for rows in (1, 8, 21):
        x = np.random.default_rng(rows).standard_normal((rows, 32)).astype(np.float32)
        np.savez(folder / f"{rows}.npz", x=x, y=model.serve(x)["y"])
    return folder / "fast"


_SERVE = """
import ctypes, sys
from pathlib import Path
import numpy as np
import tensorflow as tf
import composite
from composite.binding import native
fast = Path(sys.argv[1])
{load}
for rows in (1, 8, 21):
    sample = np.load(fast.parent / f"{{rows}}.npz")
    y = model.signatures["serving_default"](x=tf.constant(sample["x"]))["y"]
    np.testing.assert_allclose(y, sample["y"], rtol=1e-4, atol=1e-5)
stats = composite.stats()
maps = open("/proc/self/maps").read()
print(stats["kernel_launches"], stats["compiles"], stats["expansion_runs"] > 0, "libtvm" in maps)
"""
_WITH_CONSENT = "model = composite.load_model(fast, native_code=True)"
_IN_C = """
inside = fast / "assets.extra" / "composite" / "region-kernels"
for _ in range(2):
    assert native.library().composite_load_library(str(inside).encode(), None, 0) == 0
model = tf.saved_model.load(str(fast))
"""


@pytest.mark.parametrize(
    ("load", "printed"),
    [
        (_WITH_CONSENT, "6 0 False False"),
        (_IN_C, "6 0 False False"),
        ("model = composite.load_model(fast)", "0 0 False False"),
        ("native.library(); model = tf.saved_model.load(str(fast))", "0 0 False False"),
    ],
)
def test_a_process_that_compiles_nothing(
    fast: Path, tmp_path: Path, run_python: RunPython, load: str, printed: str
) -> None:
    env = {"COMPOSITE_JIT": "0", "COMPOSITE_CACHE_DIR": str(tmp_path / "cache")}
    done = run_python(_SERVE.format(load=load), str(fast), env=env)
    assert done.stdout.strip() == printed


_MAY_COMPILE = """
import sys
from pathlib import Path
import numpy as np
import tensorflow as tf
import composite
fast = Path(sys.argv[1])
model = composite.load_model(fast, native_code=True)
for rows in (8, 21, 1):
    sample = np.load(fast.parent / f"{rows}.npz")
    for _ in range(30):
        y = model.signatures["serving_default"](x=tf.constant(sample["x"]))["y"]
    np.testing.assert_allclose(y, sample["y"], rtol=1e-4, atol=1e-5)
    composite.wait()
stats = composite.stats()
print(stats["kernel_launches"] > 0, stats["requests"], stats["compiles"])
"""


def test_a_process_that_may_compile_has_nothing_to(
    fast: Path, tmp_path: Path, run_python: RunPython
) -> None:
    env = {"COMPOSITE_CACHE_DIR": str(tmp_path / "cache")}
    done = run_python(_MAY_COMPILE, str(fast), env=env)
    assert done.stdout.strip() == "True 0 0"


_COMPILES = """
import sys
import numpy as np
import tensorflow as tf
import composite
model = composite.load_model(sys.argv[1])
sample = np.load(sys.argv[2])
for _ in range(2):
    y = model.signatures["serving_default"](x=tf.constant(sample["x"]))["y"]
    np.testing.assert_allclose(y, sample["y"], rtol=1e-4, atol=1e-5)
    composite.wait()
print(composite.stats()["compiles"] > 0)
"""


def test_a_process_that_may_not_run_them_compiles_its_own(
    fast: Path, tmp_path: Path, run_python: RunPython
) -> None:
    env = {"COMPOSITE_CACHE_DIR": str(tmp_path / "cache")}
    done = run_python(_COMPILES, str(fast), str(fast.parent / "8.npz"), env=env)
    assert done.stdout.strip() == "True"


def _description(model: Path) -> Path:
    return model / region_kernels.FOLDER / "kernels.pb"


def _rewrite(model: Path, change: Any) -> None:
    """Changes the nodes of the description, and the model's hash of it."""
    path = _description(model)
    graph = GraphDef.FromString(path.read_bytes())
    for node in graph.node:
        change(node)
    data = graph.SerializeToString(deterministic=True)
    path.write_bytes(data)
    needs = replace(contents.read(model), kernels=hashlib.sha256(data).hexdigest())
    needs.write(model)


def _cut_a_kernel(model: Path) -> None:
    for kernel in (model / region_kernels.FOLDER).glob("*.so"):
        kernel.write_bytes(kernel.read_bytes()[:-1])


def _remove_the_kernels(model: Path) -> None:
    for kernel in (model / region_kernels.FOLDER).glob("*.so"):
        kernel.unlink()


def _point_elsewhere(model: Path) -> None:
    def change(node: Any) -> None:
        if "_library" in node.attr:
            node.attr["_library"].s = b"../" + node.attr["_library"].s

    _rewrite(model, change)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_cut_a_kernel, "has not the kernels that were saved with it: .*so"),
        (_remove_the_kernels, "No such file"),
        (_point_elsewhere, "which is not a file of its own"),
    ],
)
def test_kernels_that_were_changed(fast: Path, tmp_path: Path, damage: Any, told: str) -> None:
    model = tmp_path / "model"
    shutil.copytree(fast, model)
    damage(model)
    assert composite.load_model(model).signatures  # which reads no kernel
    with pytest.raises(ValueError, match=told):
        composite.load_model(model, native_code=True)


def test_a_description_that_was_changed(fast: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(fast, model)
    with _description(model).open("ab") as file:
        file.write(b"\0")
    with pytest.raises(ValueError, match=r"kernels.pb is not what was saved"):
        composite.load_model(model)


def test_kernels_of_another_version_or_machine(fast: Path, tmp_path: Path) -> None:
    def change(node: Any) -> None:
        if "_version" in node.attr and len(node.attr["_in_shapes"].list.shape) == 2:
            node.attr["_version"].i += 1
        elif "_isa" in node.attr:
            node.attr["_isa"].s = b"x86-64-v9"

    model = tmp_path / "model"
    shutil.copytree(fast, model)
    _rewrite(model, change)
    before = composite.stats()
    assert composite.load_model(model, native_code=True).signatures
    assert (composite.stats() - before)["installed"] == 0


def test_what_is_added_joins_what_is_there(fast: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(fast, model)
    other = FunctionDef()
    other.signature.name = "__composite_region_other"
    before = GraphDef.FromString(_description(model).read_bytes())
    digest = region_kernels.write(model, [other], [])
    data = _description(model).read_bytes()
    after = GraphDef.FromString(data)
    assert digest == hashlib.sha256(data).hexdigest()
    assert {f.signature.name for f in after.library.function} == {
        "__composite_region_other",
        *(f.signature.name for f in before.library.function),
    }
    assert {node.name for node in before.node} <= {node.name for node in after.node}
    assert region_kernels.count(model) == 9
