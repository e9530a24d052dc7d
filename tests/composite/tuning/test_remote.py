"""Measuring on other machines: a tracker and two servers on loopback, each a process."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tensorflow as tf

import composite
from composite.kernels.tuned import Database
from tests.composite.dense_ops import dense

pytest.importorskip("tornado")
pytest.importorskip("psutil")

KEY = "two"


class Fleet(NamedTuple):
    tracker: str
    logs: tuple[Path, Path]


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("servers")
    running: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        log = folder / name
        command = [sys.executable, "-m", f"tvm.exec.{arguments[0]}", "--host", "127.0.0.1"]
        with log.open("wb") as file:
            running.append(
                subprocess.Popen(
                    [*command, *arguments[1:]],
                    stdout=file,
                    stderr=file,
                    env={**os.environ, "TVM_NUM_THREADS": "1"},
                    start_new_session=True,
                )
            )
        return log

    def until(log: Path, text: str) -> None:
        end = time.monotonic() + 60
        while text not in log.read_text():
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.05)

    try:
        port, first, second = (free_port() for _ in range(3))
        address = f"127.0.0.1:{port}"
        until(
            start("tracker", "rpc_tracker", "--port", f"{port}", "--port-end", f"{port + 1}"),
            "bind",
        )
        logs = tuple(
            start(f"server {n}", "rpc_server", "--tracker", address, "--key", KEY,
                  "--port", f"{n}", "--port-end", f"{n + 1}")
            for n in (first, second)
        )  # fmt: skip
        for log in logs:
            until(log, "bind")
        yield Fleet(address, (logs[0], logs[1]))
    finally:
        for process in running:
            os.killpg(process.pid, signal.SIGKILL)  # a server has children
            process.wait()


def wait_for_servers(fleet: Fleet, count: int) -> None:
    from composite.compiler.tvm.remote import count_servers

    host, _, port = fleet.tracker.partition(":")
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            if count_servers((host, int(port)), KEY) == count:
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail("the servers do not report to the tracker")


@pytest.mark.slow
def test_both_servers_measure(fleet: Fleet, tmp_path: Path) -> None:
    wait_for_servers(fleet, 2)
    file = tmp_path / "t.json"
    x, w, b = tf.ones((20, 40)), tf.Variable(tf.ones((48, 40))), tf.zeros((48,))
    found = composite.tune(
        dense, x, w, b, act="RELU", trials=4, database=file, tracker=fleet.tracker, key=KEY
    )
    assert found.call.startswith("20x40, constant 48x40")
    assert [row.error for row in found.trials] == [""] * 4
    assert all(row.us for row in found.trials)
    (record,) = Database.read(file).records.values()
    assert list(record.winners) == [f"rpc {KEY}"]
    served = [len(re.findall("connected from", log.read_text())) for log in fleet.logs]
    assert all(count > 0 for count in served), served


@pytest.mark.slow
def test_a_server_or_a_tracker_that_is_not_there(fleet: Fleet, tmp_path: Path) -> None:
    call = [tf.ones((20, 40)), tf.ones((48, 40)), tf.zeros((48,))]
    options: dict[str, Any] = {"act": "RELU", "trials": 1, "database": tmp_path / "t.json"}
    with pytest.raises(OSError, match="no server with the key 'other'; there are: two"):
        composite.tune(dense, *call, tracker=fleet.tracker, key="other", **options)
    with pytest.raises(OSError, match="no tracker answers at 127.0.0.1:"):
        composite.tune(dense, *call, tracker=f"127.0.0.1:{free_port()}", key=KEY, **options)
    with pytest.raises(ValueError, match="'a b' is no key"):
        composite.tune(dense, *call, tracker=fleet.tracker, key="a b", **options)
    with pytest.raises(ValueError, match="a tracker is HOST:PORT"):
        composite.tune(dense, *call, tracker="here", key=KEY, **options)
