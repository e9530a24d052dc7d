"""Saved models in Netron, which people open to see what a model is made of."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
import tensorflow as tf

import composite
from tests.composite.cli import chromium
from tests.composite.saving import saved_ops

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        chromium.PROGRAM is None, reason="there is no Chromium: apt-get install chromium"
    ),
]

_SERVE = """
import sys, netron
address = netron.start(sys.argv[1], ("127.0.0.1", 0), browse=False)
print(address[1], flush=True)
sys.stdin.read()
"""
_PATIENCE = 60  # seconds until a model is drawn
_ACCEPT = "(b => b && b.offsetParent && b.click())(document.getElementById('message-button'))"
_NODES = "[...document.querySelectorAll('svg text')].map(one => one.textContent)"
_GRAPHS = "[...document.querySelectorAll('option')].map(one => one.textContent)"


class Model(tf.Module):
    """One composite with an attribute."""

    @tf.function(input_signature=[tf.TensorSpec([None, 4])])
    def __call__(self, x: Any) -> Any:
        return {"y": saved_ops.saved_scale(x, by=3.0)}


@pytest.fixture(scope="module")
def drawn() -> Iterator[Callable[[Path, str, str], None]]:
    """Waits until Netron, shown a file, has such a text among those that a script gives.

    Its page has texts of its own before a model is there.
    """
    with chromium.tab() as tab:

        def wait(file: Path, texts: str, wanted: str) -> None:
            command = [sys.executable, "-c", _SERVE, str(file)]
            pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            with subprocess.Popen(command, **pipes) as server:
                assert server.stdin is not None
                assert server.stdout is not None
                port = next(int(line) for line in server.stdout if line.strip().isdigit())
                tab.open(f"http://127.0.0.1:{port}/")
                end = time.monotonic() + _PATIENCE
                while not any(wanted in one for one in tab.evaluate(texts)):
                    tab.evaluate(_ACCEPT)  # its question about cookies comes before a model
                    assert time.monotonic() < end, (
                        f"{wanted} is not drawn: {tab.evaluate(texts)}"
                        f"{tab.evaluate('document.body.innerText')}"
                    )
                    time.sleep(0.1)
                server.stdin.close()

        yield wait


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model as nodes, portable, and as ONNX."""
    folder = tmp_path_factory.mktemp("netron")
    composite.save(Model(), folder / "nodes")
    composite.save(folder / "nodes", folder / "portable", "portable")
    onnx.save(composite.to_onnx(folder / "nodes"), folder / "model.onnx")
    return folder


def test_a_composite_is_a_function_of_a_portable_model(drawn: Any, saved: Path) -> None:
    drawn(saved / "portable" / "saved_model.pb", _GRAPHS, "__composite_savedscale")


def test_a_composite_is_a_node_of_an_onnx_model(drawn: Any, saved: Path) -> None:
    drawn(saved / "model.onnx", _NODES, "SavedScale")
