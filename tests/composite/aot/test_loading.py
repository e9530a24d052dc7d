"""What is checked before a library is loaded, by Python and by C; how long loading takes."""

from __future__ import annotations

import _ctypes
import ctypes
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

import composite
from composite.binding import native
from tests.composite import dense_ops
from tests.yardstick import slowness

SO = "libloading_lib.so"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "lib"
    return composite.build(dense_ops.dense, folder, name="loading_lib")


def in_python(folder: Path) -> str:
    """What `composite.load` has to say; empty if it loaded the library."""
    try:
        composite.load(folder)
    except (ImportError, ValueError, FileNotFoundError) as error:
        return str(error)
    return ""


def in_c(folder: Path) -> str:
    """The same of `composite_load_library`."""
    message = ctypes.create_string_buffer(1024)
    code = native.library().composite_load_library(
        str(folder).encode(), message, ctypes.c_size_t(1024)
    )
    assert (code != 0) == bool(message.value)
    return message.value.decode()


both = pytest.mark.parametrize("load", [in_python, in_c])
Load = Callable[[Path], str]


def edited(library: Path, folder: Path, **changes: Any) -> Path:
    """A copy whose manifest says something else."""
    shutil.copytree(library, folder)
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


@both
def test_loading_again_or_a_copy_is_harmless(library: Path, tmp_path: Path, load: Load) -> None:
    copy = edited(library, tmp_path / "copy")
    assert [load(folder) for folder in (library, library, copy)] == ["", "", ""]
    assert composite.load(copy).dense.digest == dense_ops.dense.digest


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flipped(content: bytes) -> bytes:
    return content[:5000] + bytes([content[5000] ^ 1]) + content[5001:]


def test_a_library_stays_when_it_is_closed(library: Path, tmp_path: Path) -> None:
    path = tmp_path / SO
    shutil.copy(library / SO, path)
    opened = ctypes.CDLL(str(path))  # which registers its ops and kernels
    _ctypes.dlclose(opened._handle)
    assert str(path) in Path("/proc/self/maps").read_text(encoding="utf-8")


@both
@pytest.mark.parametrize("damage", [cut, flipped, lambda _: b""])
def test_other_bytes_are_refused_before_they_are_mapped(
    library: Path, tmp_path: Path, load: Load, damage: Callable[[bytes], bytes]
) -> None:
    # What is loaded already is not looked at again: this one has to be another library.
    copy = edited(library, tmp_path / "copy", files={SO: hashlib.sha256(b"other").hexdigest()})
    file = copy / SO
    file.write_bytes(damage(file.read_bytes()))
    assert SO in load(copy)
    assert "damaged" in load(copy)
    assert SO not in "".join(
        line for line in Path("/proc/self/maps").read_text().splitlines() if str(copy) in line
    )


@both
def test_a_file_that_is_no_file(library: Path, tmp_path: Path, load: Load) -> None:
    copy = edited(library, tmp_path / "copy", files={SO: "0" * 64})
    (copy / SO).unlink()
    assert "No such file" in load(copy)
    (copy / SO).symlink_to(library / SO)
    assert SO in load(copy)
    assert "symbolic links" in load(copy) or "it is a link" in load(copy)


@both
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tensorflow": "2.20.1"}, f"was built for TensorFlow 2.20.1, but {tf.__version__}"),
        ({"format": 1}, "has format 1, not 2: build it again"),
        ({"files": {SO: "0" * 64}}, "damaged"),
        ({"name": "../other", "files": {"lib../other.so": "0"}}, "not a file of its own folder"),
    ],
)
def test_a_manifest_of_something_else(
    library: Path, tmp_path: Path, load: Load, changes: dict[str, Any], message: str
) -> None:
    said = load(edited(library, tmp_path / "copy", **changes))
    assert message in said
    assert "\n" not in said


@both
def test_no_library_at_all(tmp_path: Path, load: Load) -> None:
    assert "holds no built library: it has no manifest.json" in load(tmp_path)
    for text in ("", "nonsense", "[]", "{}", '{"format": 2}'):
        (tmp_path / "manifest.json").write_text(text)
        assert "manifest.json is damaged" in load(tmp_path)


_BUILD = """
import sys, composite
composite.build(sys.argv[1], sys.argv[2], name="other_lib")
"""
_LOAD = """
import ctypes, sys
import composite
from composite.binding import native
first = composite.load(sys.argv[1])
try:
    composite.load(sys.argv[2])
except ValueError as error:
    print("python:", error)
message = ctypes.create_string_buffer(1024)
assert native.library().composite_load_library(sys.argv[2].encode(), message, ctypes.c_size_t(1024))
print("c:", message.value.decode())
assert first.dense(*[[[1.0, 2.0]], [[3.0, 4.0]], [0.5]], act="").numpy().tolist() == [[11.5]]
"""


def test_two_libraries_that_define_an_op_differently(
    library: Path, tmp_path: Path, run_python: Any
) -> None:
    text = Path(dense_ops.__file__).read_text()
    assert "Relu(features=result)" in text
    (tmp_path / "other_ops.py").write_text(
        text.replace("Relu(features=result)", "Elu(features=result)")
    )
    other = tmp_path / "other"
    run_python(_BUILD, str(tmp_path / "other_ops.py"), str(other))
    said = run_python(_LOAD, str(library), str(other)).stdout.splitlines()
    assert [line.partition(" ")[0] for line in said] == ["python:", "c:"]
    for line in said:
        assert f"TestDense of {other} has another body than the one defined here at " in line


_MANY = '''
@Composite("ManyOps{i}", inputs=["x: T", "w: T"], attrs=["act: string = ''"],
           derived_attrs=["T: {{float, double}}"], outputs=["y: T"])
def op{i}(x, w, act):
    """Op {i}."""
    y = tf.matmul(x, w) + {i}.0
    if act == "RELU":
        y = tf.nn.relu(y)
    return y
'''
_TIME = """
import sys, time
import tensorflow as tf
import composite
from composite.aot import loading  # with what it needs
from composite.binding import native
native.library()
load = composite.load
start = time.thread_time()
ops = load(sys.argv[1]).ops
print((time.thread_time() - start) / len(ops) * 1e3)
"""


@pytest.mark.timed
def test_loading_takes_less_than_a_millisecond_an_op(tmp_path: Path, run_python: Any) -> None:
    source, out = tmp_path / "many_ops.py", tmp_path / "many"
    ops = "".join(_MANY.format(i=i) for i in range(40))
    source.write_text("import tensorflow as tf\nfrom composite import Composite\n" + ops)
    run_python(_BUILD, str(source), str(out))
    times = []
    for _ in range(3):
        times.append(float(run_python(_TIME, str(out)).stdout))
        if times[-1] < 1:
            break
    assert min(times) < slowness(), times
