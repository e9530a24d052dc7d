"""composite.build and composite.load: a library that carries an op to where nothing compiles."""

import ctypes
import filecmp
import json
import shutil
from pathlib import Path

import pytest
import tensorflow as tf

import composite
from tests.composite import dense_ops

SOURCE = Path(dense_ops.__file__)
SIGNATURES = {
    "dense": [
        {
            "input_": ("float32", ["batch", 64]),
            "filter_": ("float32", [32, 64]),
            "bias": ("float32", [32]),
            "act": "RELU",
        }
    ]
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return composite.build(
        SOURCE, tmp_path_factory.mktemp("built") / "lib", name="test_lib", signatures=SIGNATURES
    )


def test_the_folder(library):
    assert sorted(path.name for path in library.iterdir()) == [
        "libtest_lib.so",
        "libtest_lib_kernels.so",
        "manifest.json",
        "test_lib.md",
        "test_lib.mlir",
        "test_lib.py",
        "test_lib.pyi",
        "timings.json",
    ]
    manifest = json.loads((library / "manifest.json").read_text())
    assert [op["op"] for op in manifest["ops"]] == ["TestDense", "TestTwoLayers", "TestScale"]
    (kernel,) = manifest["kernels"]
    assert kernel["shapes"] == "s0x64, 32x64, 32"
    (timing,) = json.loads((library / "timings.json").read_text())["kernels"].values()
    assert timing["verdict"] in ("kernel", "expansion")
    assert timing["kernel_us"] > 0
    assert timing["expansion_us"] > 0
    everything = b"".join(path.read_bytes() for path in library.iterdir())
    assert str(SOURCE.parent).encode() not in everything
    assert not [p for p in library.parent.iterdir() if p != library]


def test_loading_where_the_ops_are_defined_gives_ops_too(library):
    ops = composite.load(library)
    assert sorted(ops.ops) == ["dense", "scale", "two_layers"]
    assert ops.dense.digest == dense_ops.dense.digest
    # Its file is named by the packages that it lies in, and tests/ is none.
    mlir = dense_ops.dense.mlir.replace("tests/composite/", "").replace("tests.composite.", "")
    assert ops.dense.mlir == mlir
    assert ops.dense.__doc__ == dense_ops.dense.__doc__
    assert composite.load(library) is ops
    with pytest.raises(AttributeError, match="has no op 'conv'"):
        _ = ops.conv


def test_what_was_built_serves_here_too(library):
    x, w, b = tf.zeros([7, 64]), tf.zeros([32, 64]), tf.zeros([32])
    told = composite.explain(dense_ops.dense, x, w, b, act="RELU")
    assert told.kernel_us, told  # measured, whichever won
    with composite.options(backend="tvm"):
        dense_ops.dense(x, w, b, act="RELU")


_SERVE = """
import sys, threading
import numpy as np
import tensorflow as tf
import composite
{start}
x, w, b = (np.load(sys.argv[2] + name) for name in ("/x.npy", "/w.npy", "/b.npy"))
expected = np.load(sys.argv[2] + "/y.npy")
threads = threading.active_count()
with composite.options(backend="tvm"):
    found = ops.dense(x, w, b, act="RELU")
np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
np.testing.assert_allclose(
    tf.function(lambda x: ops.dense(x, w, b, act="RELU"))(x), expected, rtol=1e-5, atol=1e-5
)
stats = composite.stats()
assert stats["kernel_launches"] >= 1 and stats["copies"] == 0 and stats["answered"] == 0, stats
told = composite.explain(ops.dense, x, w, b, act="RELU")
assert told.kernel and told.kernel_us and told.expansion_us, told
# No kernel was built for TANH: TensorFlow's ops run, and it is said why.
ops.dense(x, w, b, act="TANH")
told = composite.explain(ops.dense, x, w, b, act="TANH")
assert told.path == "expansion" and told.reason, told
with tf.GradientTape() as tape:
    w_ = tf.Variable(w)
    y = ops.dense(x, w_, b, act="RELU")
slope = tape.gradient(y, w_)
np.testing.assert_allclose(slope, (expected > 0).astype(np.float32).T @ x, rtol=1e-4, atol=1e-4)
hidden, y = ops.two_layers(x, np.eye(64, dtype=np.float32), np.zeros(64, np.float32))
np.testing.assert_allclose(hidden, np.maximum(x, 0))
maps = open("/proc/self/maps").read()
for word in ("tvm", "torch_mlir", "mlir"):
    assert not [m for m in sys.modules if m.split(".")[0].startswith(word)], word
assert "libtvm" not in maps and "torch_mlir" not in maps
assert threading.active_count() == threads == 1, threading.enumerate()
names = {{open(f"/proc/self/task/{{t}}/comm").read().strip()
         for t in __import__("os").listdir("/proc/self/task")}}
assert not [n for n in names if "composite" in n], names
print("served")
"""


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    import numpy as np

    folder = tmp_path_factory.mktemp("sample")
    random = np.random.default_rng(0)
    shapes = {"x": (7, 64), "w": (32, 64), "b": (32,)}
    values = {n: random.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    for name, value in values.items():
        np.save(folder / f"{name}.npy", value)
    np.save(folder / "y.npy", dense_ops.dense.python_function(*values.values(), "RELU"))
    return str(folder)


def test_a_serving_process_has_no_compiler_and_no_thread(library, sample, run_python):
    code = _SERVE.format(start="ops = composite.load(sys.argv[1])")
    assert run_python(code, str(library), sample).stdout.endswith("served\n")


def test_the_wrapper_is_a_module(library, sample, run_python):
    code = _SERVE.format(start="sys.path.insert(0, sys.argv[1]); import test_lib as ops").replace(
        "composite.explain(ops.", "composite.explain(ops.library."
    )
    assert run_python(code, str(library), sample).stdout.endswith("served\n")


_SAVE = """
import sys
import numpy as np
import tensorflow as tf
from tests.composite.dense_ops import dense

class Model(tf.Module):
    def __init__(self):
        self.w = tf.Variable(np.load(sys.argv[2] + "/w.npy"))
        self.b = tf.Variable(np.load(sys.argv[2] + "/b.npy"))

    @tf.function(input_signature=[tf.TensorSpec([None, 64])])
    def __call__(self, x):
        return dense(x, self.w, self.b, act="RELU")

    @tf.function(input_signature=[tf.TensorSpec([None, 64])])
    def slope(self, x):
        with tf.GradientTape() as tape:
            y = self(x)
        return tape.gradient(y, self.w)

tf.saved_model.save(Model(), sys.argv[1])
"""
_MODEL = """
import sys
import numpy as np
import tensorflow as tf
import composite
composite.load(sys.argv[1])
model = tf.saved_model.load(sys.argv[3])
x, expected = np.load(sys.argv[2] + "/x.npy"), np.load(sys.argv[2] + "/y.npy")
np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-5)
slope = (expected > 0).astype(np.float32).T @ x
np.testing.assert_allclose(model.slope(x), slope, rtol=1e-4, atol=1e-4)
with tf.GradientTape() as tape:
    y = model(tf.constant(x))
np.testing.assert_allclose(tape.gradient(y, model.w), slope, rtol=1e-4, atol=1e-4)
assert "tvm" not in sys.modules and "torch_mlir" not in sys.modules
print("trained")
"""


def test_a_saved_model_runs_and_trains_in_a_fresh_process(library, sample, run_python, tmp_path):
    model = str(tmp_path / "model")
    run_python(_SAVE, model, sample)
    assert run_python(_MODEL, str(library), sample, model).stdout.endswith("trained\n")


def test_a_model_of_another_body_says_so(sample, run_python, tmp_path):
    model = str(tmp_path / "model")
    run_python(_SAVE, model, sample)
    # Beside the script, so it is found before the real one.
    changed = tmp_path / "tests" / "composite" / "dense_ops.py"
    changed.parent.mkdir(parents=True)
    changed.write_text(SOURCE.read_text().replace("Relu(features=result)", "Elu(features=result)"))
    done = run_python(
        """
import sys
import numpy as np
import tensorflow as tf
from tests.composite import dense_ops
assert dense_ops.__file__ != sys.argv[3]
try:
    model = tf.saved_model.load(sys.argv[2])
    model(np.load(sys.argv[1] + "/x.npy"))
except (tf.errors.OpError, ValueError) as error:
    print("told:", error)
""",
        sample,
        model,
        str(SOURCE),
    )
    assert "told:" in done.stdout
    assert "TestDense" in done.stdout


def test_bytes_are_the_same_in_two_processes(run_python, tmp_path):
    for seed in ("1", "2"):
        run_python(
            "import sys, composite\n"
            f"composite.build(sys.argv[1], sys.argv[2], name='x', signatures={SIGNATURES!r})",
            str(SOURCE),
            str(tmp_path / seed),
            env={"PYTHONHASHSEED": seed, "COMPOSITE_CACHE_DIR": str(tmp_path / "cache" / seed)},
        )
    one, two = tmp_path / "1", tmp_path / "2"
    names = [path.name for path in one.iterdir() if path.name != "timings.json"]
    same, different, missing = filecmp.cmpfiles(one, two, names, shallow=False)
    assert (different, missing) == ([], [])
    assert len(same) == 7


def test_bytes_do_not_depend_on_how_the_source_was_imported(library, run_python, tmp_path):
    run_python(
        "import sys, composite\n"
        f"composite.build(sys.argv[1], sys.argv[2], name='test_lib', signatures={SIGNATURES!r})",
        str(SOURCE),  # as dense_ops, not as tests.composite.dense_ops
        str(tmp_path / "again"),
    )
    names = [path.name for path in library.iterdir() if path.name != "timings.json"]
    _, different, missing = filecmp.cmpfiles(library, tmp_path / "again", names, shallow=False)
    assert (different, missing) == ([], [])


@pytest.mark.parametrize("damage", ["cut", "flip", "missing", "link"])
def test_a_damaged_library_is_refused_and_the_process_lives(library, tmp_path, run_python, damage):
    copy = tmp_path / "copy"
    shutil.copytree(library, copy)
    file = copy / "libtest_lib.so"
    content = file.read_bytes()
    file.unlink()
    if damage == "cut":
        file.write_bytes(content[:2000])
    elif damage == "flip":
        file.write_bytes(content[:5000] + bytes([content[5000] ^ 1]) + content[5001:])
    elif damage == "link":
        file.symlink_to(library / "libtest_lib.so")
    code = """
import sys, composite
try:
    composite.load(sys.argv[1])
except (ValueError, FileNotFoundError) as error:
    print("told:", error)
"""
    done = run_python(code, str(copy))
    assert "told:" in done.stdout
    assert "build the library again" in done.stdout


def _edited(library, folder, **changes):
    shutil.copytree(library, folder)
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


def test_a_library_for_another_tensorflow_is_refused(library, tmp_path):
    with pytest.raises(ImportError, match=r"was built for TensorFlow 2\.20\.0"):
        composite.load(_edited(library, tmp_path / "old", tensorflow="2.20.0"))


@pytest.mark.parametrize("name", ["../evil.so", "/tmp/evil.so", ".hidden"])
def test_a_manifest_cannot_point_outside(library, tmp_path, name):
    with pytest.raises(ValueError, match="not a file of its own folder"):
        composite.load(_edited(library, tmp_path / "bad", files={name: "0"}))


def test_a_folder_that_is_no_library(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no built library"):
        composite.load(tmp_path)
    (tmp_path / "manifest.json").write_text("nonsense")
    with pytest.raises(ValueError, match="damaged"):
        composite.load(tmp_path)


def test_another_body_of_the_name_is_a_conflict(library, tmp_path):
    manifest = json.loads((library / "manifest.json").read_text())
    ops = [op | {"digest": "0" * 32} for op in manifest["ops"]]
    with pytest.raises(ValueError, match=r"TestDense of .* has another body .*dense_ops\.py:"):
        composite.load(_edited(library, tmp_path / "other", ops=ops, files={"libtest_lib.so": "1"}))


def test_build_leaves_what_is_not_a_library_alone(tmp_path):
    (tmp_path / "precious").write_text("x")
    with pytest.raises(FileExistsError, match="left as it is"):
        composite.build(dense_ops.scale, tmp_path, name="x")
    assert (tmp_path / "precious").read_text() == "x"


def test_build_replaces_a_library(tmp_path):
    out = tmp_path / "lib"
    for _ in range(2):
        assert composite.build(dense_ops.two_layers, out, name="layers") == out
    manifest = json.loads((out / "manifest.json").read_text())
    assert [op["op"] for op in manifest["ops"]] == ["TestDense", "TestTwoLayers"]


def test_wrong_arguments_of_build(tmp_path):
    with pytest.raises(ValueError, match="not an identifier"):
        composite.build(dense_ops.scale, tmp_path / "x", name="no name")
    with pytest.raises(ValueError, match="not an identifier"):
        composite.build(dense_ops.scale, tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        composite.build(tmp_path / "missing.py", tmp_path / "x")
    with pytest.raises(ValueError, match="signatures for"):
        composite.build(dense_ops.scale, tmp_path / "x", name="x", signatures={"conv": []})
    with pytest.raises(TypeError, match="missing a required argument"):
        dense_ops.dense.add_signature(input_=("float32", [1, 2]))


def test_an_own_gradient_does_not_travel_and_says_so(run_python, tmp_path):
    source = tmp_path / "own_ops.py"
    source.write_text('''
from composite import Composite

@Composite("TestOwn", inputs=["x: float"], outputs=["y: float"])
def own(x):
    """Doubles."""
    return x * 2.0

@own.gradient
def gradient(op, slope):
    return slope * 100.0
''')
    composite.build(source, tmp_path / "lib")
    done = run_python(
        """
import sys, composite
import tensorflow as tf
own = composite.load(sys.argv[1]).own
x = tf.constant(1.0)
assert own(x).numpy() == 2
with tf.GradientTape() as tape:
    tape.watch(x)
    y = own(x)
try:
    tape.gradient(y, x)
except LookupError as error:
    print(error)
""",
        str(tmp_path / "lib"),
    )
    assert "TestOwn was given a gradient of its own in Python (own_ops.py:5)" in done.stdout


def test_tensorflow_itself_can_load_the_library(library, run_python):
    """As TF Serving does: the runtime first, then the library, and no Python of ours."""
    code = """
import ctypes, sys
import tensorflow as tf
ctypes.CDLL(sys.argv[2])
module = tf.load_op_library(sys.argv[1])
y = tf.raw_ops if module is None else module.test_scale(x=[1.0, 2.0], times=2)
assert y.numpy().tolist() == [1.0, 2.0]
assert "composite" not in sys.modules
print("loaded")
"""
    from composite.binding import native

    done = run_python(code, str(library / "libtest_lib.so"), str(native.library_path()))
    assert done.stdout.endswith("loaded\n")
    assert ctypes.sizeof(ctypes.c_void_p) == 8
