"""Regions are dumped with their inputs by one process, and run again by another."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from click.testing import CliRunner
from tensorflow.core.framework.graph_pb2 import GraphDef

import composite
from composite.acceleration import replaying
from composite.cli.main import main
from composite.kernels import produce, verify
from tests.conftest import environment
from tests.fork_server import Server

DUMPING = """
import numpy as np, tensorflow as tf, composite
from composite.jit import worker
worker.announce_compiler()
worker.start = lambda: None  # kernels may come, and nobody makes them
@composite.Composite("DumpedHalf", inputs=["x: float"], outputs=["y: float"])
def half(x):
    return tf.tanh(x) * 0.5
weight = tf.Variable(np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4))
@tf.function
def model(x):
    return half(tf.matmul(x, weight))
with composite.options(regions=True):
    for rows in (3, 3, 5):
        model(tf.reshape(tf.range(rows * 8.0), [rows, 8]) / 8.0)
"""


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory, fork_server: Server) -> Path:
    folder = tmp_path_factory.mktemp("dumps") / "regions"
    own = environment() | {"COMPOSITE_REGIONS_DUMP": str(folder)}
    script = folder.parent / "dumping.py"  # a composite has a source
    script.write_text(DUMPING)
    fork_server.run([str(script)], folder.parent, own, timeout=300).check_returncode()
    return folder


def test_a_region_runs_again(dump: Path) -> None:
    assert len(list(dump.iterdir())) == 2  # one for each batch
    report = composite.replay(dump, timed=False)
    assert report.is_right
    assert sorted(one.inputs for one in report.replayed) == [
        "float32[3, 8], float32[8, 4]",
        "float32[5, 8], float32[8, 4]",
    ]
    for one in report.replayed:
        assert (one.ops["MatMul"], one.ops["Tanh"], one.refusal) == (1, 1, "")
        assert 0 <= one.error < 1e-5
        assert f"region {one.region[-8:]} ({one.file}): " in str(report)


def test_a_kernel_that_is_wrong(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = min(dump.iterdir())
    run = verify.run_kernel

    def off_by_one(*args: Any, **kwargs: Any) -> Any:
        return [y + 1 for y in run(*args, **kwargs)]

    monkeypatch.setattr(produce, "check", lambda *_: verify.Accuracy(0.0, "", False))
    monkeypatch.setattr(verify, "run_kernel", off_by_one)
    (found,) = composite.replay(file, timed=False).replayed
    assert "output 0 is off by " in found.wrong
    assert not found.is_right
    done = CliRunner().invoke(main, ["replay", str(file), "--no-times"])
    assert done.exit_code == 3
    assert "the kernel is wrong: output 0 is off by " in done.output

    def refuse(*_: Any) -> Any:
        raise verify.Mismatch("output 0 is off")

    monkeypatch.setattr(produce, "check", refuse)
    (found,) = composite.replay(file, timed=False).replayed
    assert found.lines()[-1] == "  the kernel is wrong: it failed its check: output 0 is off"


def test_a_region_that_fails_does_not_hide_the_others(
    dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_kernel = produce.compile_kernel
    first: list[int] = []

    def fails_once(*args: Any) -> Any:
        if not first:
            first.append(1)
            raise tf.errors.InvalidArgumentError(None, None, "indices[0] = 7\nis not in [0, 5)")
        return compile_kernel(*args)

    monkeypatch.setattr(produce, "compile_kernel", fails_once)
    report = composite.replay(dump, timed=False)
    failed, right = report.replayed
    told = "it could not be checked: InvalidArgumentError: indices[0] = 7 is not in [0, 5)"
    assert failed.lines()[-1] == f"  {told}"
    assert (failed.is_right, right.is_right, report.is_right) == (False, True, False)


def test_what_is_no_dump(dump: Path, tmp_path: Path) -> None:
    for none in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(FileNotFoundError, match=r"was dumped in .*: a process .*_DUMP="):
            composite.replay(none)
    file = tmp_path / "other.pb"
    file.write_bytes(b"no proto")
    with pytest.raises(ValueError, match="other.pb is no region that was dumped"):
        composite.replay(file)
    graph = GraphDef.FromString(min(dump.iterdir()).read_bytes())
    other = f"__composite_region_{'0' * 32}"  # not what its name stands for
    graph.library.function[0].signature.name = graph.node[0].attr["f"].func.name = other
    file.write_bytes(graph.SerializeToString())
    with pytest.raises(ValueError, match="other.pb is no region that was dumped"):
        composite.replay(file)


def test_nothing_is_said_of_times_that_were_not_taken() -> None:
    one = replaying.Replayed("a.pb", "__composite_region_0123456789", Counter(["Tanh"]), "")
    assert not any("us" in line for line in one.lines())
    timed = replace(one, kernel_us=1.5, expansion_us=3.0)
    assert timed.lines()[-1] == "  kernel 1.5 us, expansion 3 us"
