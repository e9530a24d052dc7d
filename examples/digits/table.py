"""The table of the demo: for each layer the path its call takes, why, and what the ways cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf
from rich.console import Group
from rich.markup import escape
from rich.table import Table

import composite
from benchmarks.dense_ways import EXPANSION, OURS, time_dense
from examples.digits.model import FusedDense
from examples.digits.ops import fused_fully_connected

BATCHES = (1, 64)
_COLUMNS = (OURS, EXPANSION, "tf.function", "XLA")


def calls(model: keras.Model) -> Iterator[tuple[FusedDense, Any]]:
    """Each layer with an input of each batch size, as the layer before it makes it."""
    for batch in BATCHES:
        x: Any = tf.random.stateless_uniform([batch, 64], seed=(0, 0))
        for layer in model.layers:
            yield layer, x
            x = layer(x)


def paths_table(model: keras.Model, seconds: float = 1.5) -> Group:
    """Path of each layer's call; microseconds of a node in a stack of such layers; the reasons."""
    table = Table(title="us a node, in a stack of such layers there and back")
    table.add_column("layer", no_wrap=True)
    table.add_column("path", no_wrap=True)
    for column in _COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    reasons = []
    for layer, x in calls(model):
        said = composite.explain(fused_fully_connected, x, layer.filter_, layer.bias, act=layer.act)
        m, k, n = x.shape[0], x.shape[1], layer.units
        timings = time_dense((m, k, n), act=layer.act, seconds=seconds)
        times = (f"{timings.microseconds(way).median:.1f}" for way in _COLUMNS)
        name = f"{m} x {k} -> {n} {layer.act}".rstrip()
        table.add_row(name, said.path, *times)
        reasons.append(f"{name}: {said.path}, {escape(said.reason)}")
    return Group(table, "why:", *reasons)
