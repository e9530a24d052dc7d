"""Whose calls a name states."""

import json

import composite
from composite import Composite
from tests.composite import dense_ops


def test_an_op_that_calls_one_of_its_own_name_has_the_name(run_python, tmp_path):
    """Wrapper and stub have one function of the name, and stated calls are of that op."""

    @Composite("TestTwin", inputs=["x: float"], outputs=["y: float"])
    def scale(x):
        return dense_ops.scale(x, 1, factor=3.0)

    out = composite.build(
        scale, tmp_path / "twin", name="twin", signatures={"scale": [{"x": ("float32", [64])}]}
    )
    manifest = json.loads((out / "manifest.json").read_text())
    assert [op["op"] for op in manifest["ops"]] == ["TestScale", "TestTwin"]
    assert [kernel["op"] for kernel in manifest["kernels"]] == ["TestTwin"]
    for file in ("twin.py", "twin.pyi"):
        assert (out / file).read_text().count("def scale(") == 1
    script = "import sys; sys.path.append(sys.argv[1]); import tensorflow as tf, twin"
    ran = run_python(f"{script}; print(twin.scale(tf.ones([2])).numpy())", str(out))
    assert "[3. 3.]" in ran.stdout
