"""Nodes with numerics="invariant": which kernels serve them, and what they wait for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from tests.runtime import kernel_support as k
from tests.runtime.kernels.dense_node import OPS, Dense, Unique, refuse, tell_compiler


@pytest.fixture(autouse=True)
def compiler() -> Iterator[None]:
    tell_compiler(OPS, dtypes=[tf.float32])
    yield
    tell_compiler([])


@pytest.fixture(scope="module")
def library(tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("kernels")
    return k.build(folder, "k_any", k.DENSE_C)


INVARIANT = {"_composite_numerics": "invariant"}
X = {"x": tf.ones([2, 3]), "w": tf.ones([3, 4]), "b": tf.ones([4])}


def test_only_an_invariant_kernel_serves_an_invariant_node(unique: Unique, library: Path) -> None:
    """Be it slower or not; and no other node has it."""
    dense = Dense(unique, library, **INVARIANT)
    dense.install("kernel")
    assert dense.explain(X)["path"] == "expansion"
    dense.install("expansion", _invariant=True)
    assert dense.explain(X)["path"] == "kernel"
    done = dense.run(X)
    assert (done.launches, done.expansion_runs) == (1, 0)
    assert dense.explain(X, _composite_numerics="fast")["path"] == "kernel"


def test_an_invariant_node_waits_for_its_kernel(unique: Unique, library: Path) -> None:
    dense = Dense(unique, library, **INVARIANT)

    def make(_: Any) -> tuple[str, str]:
        dense.install("kernel", _invariant=True)
        return "kernel", ""

    with k.Worker(make) as worker:
        assert dense.explain(X)["reason"].endswith(
            'with numerics="invariant" the call waits for its kernel'
        )
        done = dense.run(X)
    assert (done.launches, done.expansion_runs) == (1, 0)
    assert worker.requests[0].attr["_invariant"].b


def test_an_invariant_node_without_kernel_runs_its_ops_for_good(
    unique: Unique, library: Path
) -> None:
    dense = Dense(unique, library, **INVARIANT)
    with k.Worker(refuse):
        first = dense.run(X)
        assert (first.launches, first.expansion_runs) == (0, 1)
        explanation = dense.explain(X)
        assert explanation["final"]
        assert explanation["reason"].endswith(
            "the rows of TensorFlow's ops may depend on their batch"
        )
        assert dense.run(X).replaced
