"""Models in the three ways to save them, where this library is and where it is not.

Each way gives the same numbers: as nodes and portable in this process, portable in a process of
TensorFlow alone, and with the library inside in a C program. Portable is timed beside the nodes,
and in TensorFlow alone beside the model that was written without composites.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import composite
from benchmarks.rows import Row, emit
from benchmarks.stock import served
from benchmarks.subjects.gallery import by_hand
from benchmarks.timing import KINDS, QUICK, Spread, Timings, interleave
from benchmarks.warm import warm
from benchmarks.works.saved import SAVED, SavedWork
from composite.ops.registry import OPS
from composite.saving import contents, saved_model

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 3.0
REGAINED = 0.95  # of the speed of nodes, where the library is
KEPT = 0.98  # of the speed of what was written by hand, where it is not


def rows() -> Iterator[Row]:
    """Numbers and speeds of each model."""
    with tempfile.TemporaryDirectory() as scratch:
        program = serving_program(Path(scratch))
        for name, work in list(SAVED.items())[: 2 if QUICK and not KINDS else None]:
            if not KINDS or name in KINDS:
                yield from of_model(name, work, Path(scratch, name.replace(" ", "_")), program)


def of_model(name: str, work: SavedWork, folder: Path, program: Path) -> Iterator[Row]:
    """One model in a folder of its own: how far the ways are apart, and both ratios."""
    x = work.input()
    save(work, folder, x)
    ways = {form: served(folder / form, x) for form in ("nodes", "portable")}
    warm(ways)
    expected = served(folder / "by_hand", x)().numpy()
    stock = in_stock_tensorflow(folder)
    answer, counted = by_c(program, folder, x)
    found = {
        **{form: call().numpy() for form, call in ways.items()},
        "TensorFlow alone": np.load(folder / "stock.npy"),
        "C": answer.reshape(expected.shape),
    }
    apart = {way: _apart(y, expected) for way, y in found.items()}
    yield Row(
        f"{name}: largest difference from what was written by hand",
        max(apart.values()),
        "of the largest number",
        at_most=work.tolerance,
        detail=", ".join(f"{way} {one:.1e}" for way, one in apart.items()) + f"; C: {counted}",
    )
    yield _with_library(name, interleave(ways, seconds=SECONDS))
    yield Row.of(
        f"{name}: by hand / portable, TensorFlow alone",
        Spread(**stock["ratio"]),
        "x",
        at_least=KEPT,
        detail="us: " + ", ".join(f"{way} {time:.0f}" for way, time in stock["times"].items()),
    )


def save(work: SavedWork, folder: Path, x: Any) -> None:
    """The model in all forms, the one without composites, and the input."""
    folder.mkdir()
    np.save(folder / "input.npy", x)
    model = work.model(lambda op: op)
    composite.save(model, folder / "nodes")
    composite.save(work.model(by_hand), folder / "by_hand")
    composite.save(folder / "nodes", folder / "portable", "portable")
    calls = calls_of(model, x)
    ops = [op for op_name in calls if (op := OPS.current(op_name)) is not None]
    library = composite.build(ops, folder / "library", name="saved_ops", signatures=calls)
    composite.save(folder / "nodes", folder / "inside", "inside", libraries=[library])


def calls_of(model: Any, x: Any) -> dict[str, list[dict[str, Any]]]:
    """The calls of ops that a model makes for an input, as signatures of a library."""
    call = model if isinstance(model, keras.Model) else model.serve.python_function
    traced = tf.function(call, autograph=False).get_concrete_function(tf.constant(x))
    calls: dict[str, list[dict[str, Any]]] = {}
    for node in traced.graph.get_operations():
        if (op := OPS.current(node.type)) is not None:
            calls.setdefault(node.type, []).append(_signature(op, node))
    return calls


def _signature(op: Any, node: tf.Operation) -> dict[str, Any]:
    tensors = iter((tensor.dtype.name, tuple(tensor.shape)) for tensor in node.inputs)
    stated: dict[str, Any] = {}
    for arg in op.schema.inputs:
        count = node.get_attr(arg.number_attr) if arg.is_list else 1
        given = list(itertools.islice(tensors, count))
        stated[arg.name] = given if arg.is_list else given[0]
    for attr in op.schema.attrs:
        value = node.get_attr(attr.name)
        stated[attr.name] = value.decode() if isinstance(value, bytes) else value
    return stated


def in_stock_tensorflow(folder: Path) -> dict[str, Any]:
    """What `benchmarks.stock` says."""
    command = [sys.executable, "-m", "benchmarks.stock", str(folder)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def serving_program(folder: Path) -> Path:
    """The C program of examples/serving."""
    make = ["make", "-s", "-C", str(ROOT / "examples" / "serving")]
    subprocess.run([*make, f"PYTHON={sys.executable}", f"OUT={folder}"], check=True)
    return folder / "serve"


def by_c(program: Path, folder: Path, x: Any) -> tuple[Any, str]:
    """What the C program answers with the library inside, and what ran."""
    model = folder / "inside"
    signature = saved_model.read(model).meta_graphs[0].signature_def["serving_default"]
    (given,), (result,) = signature.inputs.values(), signature.outputs.values()
    ops = [one.name.partition(":")[0] for one in (given, result)]
    command = [program, model / contents.FOLDER / "saved_ops", model, *ops]
    line = " ".join(repr(float(number)) for number in x.ravel()) + "\n"
    done = subprocess.run(
        list(map(str, command)), input=line, capture_output=True, text=True, check=True
    )
    return np.array(done.stdout.split(), np.float32), done.stderr.splitlines()[-1]


def _apart(y: Any, expected: Any) -> float:
    """The largest difference, as a share of the largest number."""
    return float(np.abs(y - expected).max() / np.abs(expected).max())


def _with_library(name: str, timings: Timings) -> Row:
    times = ", ".join(f"{way} {timings.microseconds(way).median:.0f}" for way in timings.seconds)
    return Row.of(
        f"{name}: nodes / portable, with the library",
        timings.ratio("nodes", "portable"),
        "x",
        at_least=REGAINED,
        detail=f"us: {times}",
    )


if __name__ == "__main__":
    emit(rows())
