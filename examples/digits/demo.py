"""`make demo`: train on real digits, save, build, serve in a second process, show which path ran.

python -m examples.digits.demo [--out DIR] [--xla]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import keras
import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.markup import escape

import composite
from examples.digits import ops
from examples.digits.model import Array, Digits, train
from examples.digits.table import paths_table

LEAST_ACCURACY = 0.97


def signatures(model: keras.Model) -> list[dict[str, Any]]:
    """The calls of the model's layers, for any batch size: what kernels are built for."""
    return [
        {
            "input_": (tf.float32, ("batch", layer.filter_.shape[1])),
            "filter_": (tf.float32, layer.filter_.shape),
            "bias": (tf.float32, layer.bias.shape),
            "act": layer.act,
        }
        for layer in model.layers
    ]


def save(model: keras.Model, images: Array, out: Path) -> None:
    """Write the SavedModel, the op library built ahead of time, and the images to serve."""
    model.export(out / "model", verbose=False)
    calls = {"fused_fully_connected": signatures(model)}
    composite.build(ops.__file__, out / "library", name="digits_ops", signatures=calls)
    np.save(out / "images.npy", images)


def serve(out: Path) -> tuple[dict[str, Any], Array]:
    """Run serve.py in a process of its own; returns what it says of itself, and its logits."""
    names = ("model", "library", "images.npy", "predictions.npy")
    command = [sys.executable, "-m", "examples.digits.serve", *(str(out / name) for name in names)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1]), np.load(out / "predictions.npy")


def compare(console: Console, expected: Array, served: Array, report: dict[str, Any]) -> bool:
    """Say whether the second process answered as this one, without a compiler in it."""
    same = bool(np.array_equal(expected.argmax(1), served.argmax(1)))
    difference = float(np.abs(expected - served).max())
    compilers = report["mapped"] + report["imported"]
    console.print(
        f"second process: predictions {'equal' if same else 'DIFFERENT'}"
        f" (logits differ by at most {difference:.1e}),"
        f" TVM or MLIR loaded: {', '.join(compilers) or 'none'}"
    )
    console.print(f"  its first layer: {report['path']}; {escape(report['why'])}")
    return same and not compilers


def demonstrate(console: Console, out: Path, epochs: int) -> bool:
    """The whole demonstration; whether everything it shows held."""
    digits = Digits.load()
    start = time.perf_counter()
    model, accuracy = train(digits, epochs)
    console.print(
        f"{len(digits.x_train)} digits, {epochs} epochs, {time.perf_counter() - start:.1f} s:"
        f" test accuracy {accuracy:.4f} on {len(digits.x_test)} others"
    )
    expected = model(tf.constant(digits.x_test)).numpy()
    save(model, digits.x_test, out)
    report, served = serve(out)
    held = compare(console, expected, served, report)
    composite.wait()
    console.print(paths_table(model))
    console.print(f"counters of this process:\n{composite.stats()}")
    return held and accuracy >= LEAST_ACCURACY


def train_under_xla(console: Console, epochs: int) -> bool:
    """Train again, from the same start; whether it comes to the accuracy that is asked for."""
    before, start = composite.stats(), time.perf_counter()
    _, accuracy = train(Digits.load(), epochs, xla=True)
    console.print(
        f"under XLA: {time.perf_counter() - start:.1f} s, test accuracy {accuracy:.4f},"
        f" {(composite.stats() - before)['xla_nodes']} nodes compiled by XLA"
    )
    return accuracy >= LEAST_ACCURACY


@click.command()
@click.option("--out", type=click.Path(path_type=Path), help="keep model and library here")
@click.option("--epochs", default=30, show_default=True)
@click.option("--xla", is_flag=True, help="train once more, in steps that XLA compiles")
def main(out: Path | None, epochs: int, *, xla: bool) -> None:
    """Train, save, build, serve, compare; exits with 1 if something shown does not hold."""
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        held = demonstrate(console, out or Path(folder), epochs)
    if xla:
        held &= train_under_xla(console, epochs)
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
