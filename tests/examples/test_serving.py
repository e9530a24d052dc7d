"""examples/serving: a C program serves a model with a library, and no Python, TVM or MLIR.

Then the same program behind gRPC's `Predict`, for the client that TensorFlow Serving has.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from examples.digits import ops

ROOT = Path(__file__).resolve().parents[2]
INPUT, OUTPUT = "serving_default_x", "StatefulPartitionedCall"

pytestmark = pytest.mark.slow  # links against libtensorflow_cc, loads it in each process


class Model(tf.Module):
    """Two dense layers of digits/ops.py."""

    def __init__(self, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.layers = [
            (
                tf.Variable(random.standard_normal((n, k)).astype(np.float32)),
                tf.Variable(random.standard_normal(n).astype(np.float32)),
            )
            for k, n in ((64, 48), (48, 10))
        ]

    @tf.function(input_signature=[tf.TensorSpec([None, 64], name="x")])
    def __call__(self, x: Any) -> Any:
        """The logits of images [rows, 64]."""
        for w, b in self.layers:
            x = ops.fused_fully_connected(x, w, b, act="RELU")
        return x


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The program, the library, the model; images and Python's answer."""
    folder = tmp_path_factory.mktemp("serving")
    subprocess.run(
        ["make", "-C", str(ROOT / "examples" / "serving"), f"PYTHON={sys.executable}",
         f"OUT={folder}"],
        check=True, capture_output=True,
    )  # fmt: skip
    model = Model()
    tf.saved_model.save(model, str(folder / "model"))
    calls = [
        {
            "input_": ("float32", ("batch", w.shape[1])),
            "filter_": ("float32", tuple(w.shape)),
            "bias": ("float32", tuple(b.shape)),
            "act": "RELU",
        }
        for w, b in model.layers
    ]
    library = composite.build(
        ops.__file__, folder / "library", name="digits_ops",
        signatures={"fused_fully_connected": calls},
    )  # fmt: skip
    _prefer_kernels(library)
    x = np.random.default_rng(1).standard_normal((5, 64)).astype(np.float32)
    with composite.options(backend="tvm"):
        expected = x
        for w, b in model.layers:
            expected = ops.fused_fully_connected(expected, w, b, act="RELU")
    return folder / "serve", library, folder / "model", x, np.asarray(expected)


def _prefer_kernels(library: Path) -> None:
    """Say of each kernel that it was faster: which path is shown must not depend on the machine."""
    path = library / "timings.json"
    text = path.read_text().replace('"expansion"', '"kernel"').replace("false", "true")
    path.write_text(text)


def _text(x: Any) -> str:
    return " ".join(repr(float(number)) for number in x.ravel()) + "\n"


def test_the_program_answers_as_python_does(served: Any) -> None:
    program, library, model, x, expected = served
    with subprocess.Popen(
        [str(program), str(library), str(model), INPUT, OUTPUT],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        for rows in (5, 2):
            process.stdin.write(_text(x[:rows]))
            process.stdin.flush()
            found = np.array(process.stdout.readline().split(), np.float32).reshape(rows, 10)
            np.testing.assert_allclose(found, expected[:rows], rtol=1e-5, atol=1e-5)
        maps = Path(f"/proc/{process.pid}/maps").read_text()
        _, said = process.communicate()
    assert process.returncode == 0, said
    assert said.endswith("kernel_launches 4, expansion_runs 0\n"), said
    assert str(library / "libdigits_ops.so") in maps
    names = {Path(line.split()[-1]).name for line in maps.splitlines() if "/" in line}
    for word in ("tvm", "python", "mlir", "LLVM"):
        assert not [name for name in names if word in name], names


def _changed(library: Path, folder: Path, **changes: Any) -> Path:
    shutil.copytree(library, folder)
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


def test_what_is_wrong_is_said_in_one_sentence(served: Any, tmp_path: Path) -> None:
    program, library, model, *_ = served
    other = _changed(library, tmp_path / "other", tensorflow="2.20.0")
    cut = _changed(library, tmp_path / "cut")
    so = cut / "libdigits_ops.so"
    so.write_bytes(so.read_bytes()[:3000])
    of_another = f"was built for TensorFlow 2.20.0, but {tf.__version__}"
    for arguments, line, message in [
        ((tmp_path, model, INPUT, OUTPUT), "", "holds no built library: it has no manifest.json"),
        ((other, model, INPUT, OUTPUT), "", of_another),
        ((cut, model, INPUT, OUTPUT), "", "libdigits_ops.so is damaged: its SHA-256 is"),
        ((library, tmp_path / "none", INPUT, OUTPUT), "", "cannot load the model: "),
        ((library, model, "nothing", OUTPUT), "", "nothing: the model has no op of that name"),
        ((library, model, INPUT, OUTPUT), "1 2 3\n", "a line: it is not whole rows of numbers"),
    ]:
        done = subprocess.run(
            [str(program), *map(str, arguments)],
            input=line, capture_output=True, text=True, check=False, timeout=120,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )  # fmt: skip
        assert done.returncode == 1, done
        assert done.stdout == ""
        said = [text for text in done.stderr.splitlines() if text.startswith("serve: ")]
        assert len(said) == 1, done.stderr
        assert message in said[0]


# ---- behind gRPC --------------------------------------------------------------------------------


class Slow:
    """A runner that computes nothing until it is let."""

    def __init__(self) -> None:
        self.begun, self.let = Event(), Event()
        self.seen: list[int] = []

    def run(self, rows: Any) -> Any:
        self.begun.set()
        assert self.let.wait(60)
        self.seen.append(len(rows))
        if (rows < 0).any():
            raise ChildProcessError("it ended")
        return rows * 2

    def close(self) -> None:
        self.seen.append(0)


def rows_of(*values: float) -> Any:
    return np.array(values, np.float32)[:, None]


def test_what_waits_is_one_batch() -> None:
    from examples.serving.worker import Batches

    runner = Slow()
    batches = Batches(runner, most_rows=4)
    answers = [batches.submit(rows_of(0))]
    assert runner.begun.wait(60)
    answers += [batches.submit(rows_of(*given)) for given in ((1, 2), (3,), (4, 5), (6,), (-1,))]
    runner.let.set()
    batches.close()
    found = [answer.result().ravel().tolist() for answer in answers[:4]]
    assert found == [[0], [2, 4], [6], [8, 10]]
    for answer in answers[4:]:  # one batch, which failed
        with pytest.raises(ChildProcessError, match="it ended"):
            answer.result()
    assert runner.seen == [1, 5, 2, 0]  # one call of five rows may go over the bound
    assert (batches.calls, batches.batches, batches.failed) == (6, 3, True)


class Client:
    """The published client of a front, which compares what is answered and counts it."""

    def __init__(self, port: int, x: Any, expected: dict[tuple[str, int], Any]) -> None:
        import grpc
        from tensorflow_serving.apis import prediction_service_pb2_grpc

        self.refused = grpc.RpcError
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.answered: list[tuple[str, int]] = []
        self._stub = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)
        self._x = x
        self._expected = expected

    def predict(self, name: str, **inputs: Any) -> Any:
        from tensorflow_serving.apis import predict_pb2

        request = predict_pb2.PredictRequest()
        request.model_spec.name = name
        for key, value in inputs.items():
            request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
        return self._stub.Predict(request, timeout=300)

    def call(self, name: str, rows: int) -> int:
        """The version that answered for so many rows."""
        answer = self.predict(name, x=self._x[:rows])
        version = int(answer.model_spec.version.value)
        found = tf.make_ndarray(answer.outputs["output_0"])
        expected = self._expected[name, version][:rows]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
        self.answered.append((name, version))
        return version

    def calls_until(self, done: Event, name: str, rows: int) -> list[int]:
        """The versions that answered, one call after the other."""
        versions = []
        while not done.is_set():
            versions.append(self.call(name, rows))
        return versions


@contextlib.contextmanager
def front(program: Path, library: Path, **models: Path) -> Iterator[tuple[Any, int]]:
    """The process of front.py, and its port."""
    named = [f"{name}={folder}" for name, folder in models.items()]
    command = [sys.executable, "-m", "examples.serving.front", str(program), str(library), *named]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            port = next(line.split()[1] for line in process.stdout if line.startswith("port "))
            yield process, int(port)
        finally:
            process.terminate()


def _kill(program: Path, model: Path) -> None:
    """Kills the process of the program that serves a model's version."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            command = (process / "cmdline").read_bytes()
            if command.startswith(bytes(program)) and bytes(model) in command:
                os.kill(int(process.name), signal.SIGKILL)


def _reload_under_load(client: Client, rename: Callable[[], Any]) -> None:
    """Eight threads call while version 2 comes: no call fails, and none is answered by an older."""
    done = Event()
    with ThreadPoolExecutor(8) as pool:
        threads = [pool.submit(client.calls_until, done, "digits", 1 + i % 5) for i in range(8)]
        rename()
        try:
            assert any(client.call("digits", 2) == 2 for _ in range(100_000))
        finally:
            done.set()
        for thread in threads:
            assert thread.result() == sorted(thread.result())


def _calls_that_fail_until_it_is_back(client: Client, name: str) -> int:
    for lost in range(3000):
        try:
            client.call(name, 1)
        except client.refused as answer:
            code = answer.code().name
        else:
            return lost
        assert code == "UNAVAILABLE"
        time.sleep(0.1)
    raise AssertionError(f"{name} did not come back")


def test_predict_by_the_published_client(served: Any, tmp_path: Path) -> None:
    """Two models; a new version of one while it answers; what is wrong; a process that ends."""
    pytest.importorskip("tensorflow_serving", reason="`make build` installs it")
    program, library, first, x, _ = served
    one, two = Model()(x).numpy(), Model(seed=1)(x).numpy()
    expected = {("digits", 1): one, ("digits", 2): two, ("other", 7): two}
    digits, other, later = (tmp_path / name for name in ("digits", "other", "later"))
    tf.saved_model.save(Model(seed=1), str(later))
    shutil.copytree(first, digits / "1")
    shutil.copytree(later, other / "7")
    with front(program, library, digits=digits, other=other) as (process, port):
        client = Client(port, x, expected)
        assert (client.call("digits", 5), client.call("other", 3)) == (1, 7)
        _reload_under_load(client, lambda: later.rename(digits / "2"))
        for name, inputs, code, message in [
            ("none", {"x": x}, "NOT_FOUND", "there is no model 'none': digits, other"),
            ("other", {"y": x}, "INVALID_ARGUMENT", "the input is 'x', not ['y']"),
            ("other", {"x": x[:, :3]}, "INVALID_ARGUMENT",
             "x is float32[rows, 64], not float32[5, 3]"),
        ]:  # fmt: skip
            with pytest.raises(client.refused) as error:
                client.predict(name, **inputs)
            assert (error.value.code().name, error.value.details()) == (code, message)
        _kill(program, other)
        lost = _calls_that_fail_until_it_is_back(client, "other")
        assert lost >= 1
        client.channel.close()
        process.terminate()
        said = process.stdout.read()
        assert process.wait() == 0
    # Each version that was loaded has had one call then.
    given = Counter(client.answered)
    given.update(expected.keys())
    given["other", 7] += lost + 1
    counts: Counter[tuple[str, int]] = Counter()
    for name, version, calls in re.findall(r"(\w+): version (\d) is closed: (\d+) calls", said):
        counts[name, int(version)] += int(calls)
    assert counts == given
