"""What ten thousand different batch sizes leave behind: resident memory and compiled kernels."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

import composite
from benchmarks.dense_ways import op_layer, operands
from benchmarks.ops import flatten_rows
from benchmarks.rows import Row, emit
from benchmarks.timing import QUICK

SIZES = 1_000 if QUICK else 10_000
MOST_KERNELS = 8


def resident_megabytes() -> float:
    """Resident memory of this process now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def grow(what: str, whole: Any, op: Callable[[Any], Any]) -> Iterator[Row]:
    """Call the op with every batch size, eagerly and in one tf.function."""
    function = tf.function(op, input_signature=[tf.TensorSpec([None, *whole.shape[1:]])])

    def call(size: int) -> None:
        x = whole[:size]
        op(x)
        function(x)

    for size in (SIZES, 1, 2, 3, SIZES - 1):  # the allocator's high-water mark, the first kernels
        call(size)
    composite.wait()
    before, counted = resident_megabytes(), composite.stats()
    for size in range(1, SIZES + 1):
        call(size)
    composite.wait()
    growth, since = resident_megabytes() - before, composite.stats() - counted
    yield Row(
        f"{what}: memory after {SIZES} batch sizes",
        growth,
        "MB",
        at_most=100,
        detail=f"{since['expansions']} expansions, {since['kernel_launches']} kernel launches",
    )
    yield Row(f"{what}: kernels compiled meanwhile", since["answered"], "", at_most=MOST_KERNELS)


def rows() -> Iterator[Row]:
    """An op whose expansion fits every size, and one whose expansion reads the size."""
    whole, filter_, bias, *_ = operands((SIZES, 16, 8))
    yield from grow("dense", whole, lambda x: op_layer(x, filter_, bias))
    with composite.options(backend="tf"):
        yield from grow("flatten, expanded", tf.reshape(whole, [SIZES, 4, 4]), flatten_rows)


if __name__ == "__main__":
    emit(rows())
