"""A difference as a folder: the inputs in a file, and a script that compares that one call again.

    <root>/<op>-<way>/inputs.npz     every input tensor; what NumPy has no name for, as raw bytes
    <root>/<op>-<way>/reproduce.py   imports the op from its file and runs composite.check on them

Nothing is pickled. The script contains the source of an op that is in no file (a notebook's, say).
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from composite.checking.sample import Array, Sample, shown
from composite.ops.op import CompositeOp, DecoratedOp
from composite.ops.registry import OPS

INPUTS = "inputs.npz"
SCRIPT = "reproduce.py"


def save(op: DecoratedOp, way: str, sample: Sample, root: Path) -> Path:
    """Writes the folder; returns where it is. An older one of the same op and way is replaced."""
    folder = root / re.sub(r"[^A-Za-z0-9]+", "-", f"{op.op_name}-{way}").strip("-")
    folder.mkdir(parents=True, exist_ok=True)
    write_inputs(folder / INPUTS, sample)
    (folder / SCRIPT).write_text(_script(op, way, sample), encoding="utf-8")
    return folder


def write_inputs(path: Path, sample: Sample) -> None:
    """The inputs of a sample as one .npz: `<input>` or `<input>.<k>`, the dtype after a space."""
    named: dict[str, Array] = {}
    for position, value in enumerate(sample.inputs):
        if isinstance(value, list):
            named[f"{position} list"] = np.zeros(0)
            for k, array in enumerate(value):
                named[_key(f"{position}.{k}", array)] = _plain(array)
        else:
            named[_key(str(position), value)] = _plain(value)
    np.savez(path, **named)  # type: ignore[arg-type]


def read_inputs(path: Path) -> list[Any]:
    """The inputs that `write_inputs` wrote, in order: an array, or a list of arrays, for each."""
    inputs: list[Any] = []
    with np.load(path, allow_pickle=False) as stored:
        for key in stored.files:
            name, _, kind = key.partition(" ")
            if kind == "list":
                inputs.append([])
            elif "." in name:
                inputs[-1].append(_typed(stored[key], kind))
            else:
                inputs.append(_typed(stored[key], kind))
    return inputs


def _key(name: str, array: Array) -> str:
    return f"{name} {tf.as_dtype(array.dtype).name}"


def _plain(array: Array) -> Array:
    if array.dtype == object:
        return np.char.encode(array.astype(str)) if not array.size else array.astype(bytes)
    return (
        array.view(np.uint8 if array.dtype.itemsize == 1 else np.uint16)
        if (tf.as_dtype(array.dtype).name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"))
        else array
    )


def _typed(array: Array, name: str) -> Array:
    dtype = tf.as_dtype(name)
    if dtype == tf.string:
        return array.astype(object)
    wanted = np.dtype(dtype.as_numpy_dtype)
    return array if array.dtype == wanted else array.view(wanted)


def _script(op: DecoratedOp, way: str, sample: Sample) -> str:
    attrs = "".join(f", {name}={shown(value)}" for name, value in sample.attrs.items())
    return (
        f'"""{op.op_name}({sample.describe()}), way {way!r}: run me."""\n\n'
        "from pathlib import Path\n\n"
        "import tensorflow as tf\n\n"
        "import composite\n"
        "from composite.checking import reproduction\n\n"
        f"{_definition(op)}\n"
        "folder = Path(__file__).parent\n"
        f"inputs = reproduction.read_inputs(folder / {INPUTS!r})\n"
        f"options = dict(ways=[{way!r}], samples=1, report_dir=folder)\n"
        f"print(composite.check(op, *inputs, **options{attrs}))\n"
    )


def _definition(op: DecoratedOp) -> str:
    """Statements after which `op` is the op."""
    function = op.python_function
    path = Path(function.__code__.co_filename)
    if path.is_file() and "<locals>" not in function.__qualname__:
        paths = [Path(root or ".").resolve() for root in sys.path]
        # What every process of this Python has is left out.
        roots = [str(p) for p in paths if p.is_dir() and not _is_pythons(p)]
        module = function.__module__ if function.__module__ != "__main__" else path.stem
        return (
            f"op = reproduction.load({str(path.resolve())!r}, {module!r}, "
            f"{op.op_name!r},\n    roots={roots!r})\n"
        )
    text = textwrap.dedent(inspect.getsource(function))
    return (
        "from composite import Composite\n\n\n"
        f"# From {op.place}. What it calls or captures may have to be copied here, too.\n"
        f"{text}\n\nop = {function.__name__}\n"
    )


def _is_pythons(path: Path) -> bool:
    installed = [Path(root).resolve() for root in (sys.prefix, sys.base_prefix)]
    return any(path.is_relative_to(root) for root in installed)


def load(path: str, module: str, op_name: str, roots: list[str]) -> CompositeOp:
    """Runs the file that defines an op, as the module that it was; returns the op.

    ImportError when the file is gone or defines it no longer.
    """
    sys.path += [root for root in roots if root not in sys.path]
    if module not in sys.modules:
        spec = importlib.util.spec_from_file_location(module, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} is no Python file")
        made = importlib.util.module_from_spec(spec)
        sys.modules[module] = made
        spec.loader.exec_module(made)
    op = OPS.current(op_name)
    if op is None:
        raise ImportError(f"{path} does not define {op_name} any more")
    return op
