"""What is asked of the just-in-time worker, and what calls make of its answers."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.node_def_pb2 import NodeDef

from tests.runtime import kernel_support as k

pytestmark = pytest.mark.usefixtures("kernel_ops")


@pytest.fixture
def dense(unique: Callable[[str], str]) -> tuple[str, str]:
    op = unique("RtTable")
    return op, k.register(k.dense(op))


def refuse(_: Any) -> tuple[str, str]:
    return "not_covered", "it is Sunday"


class Compiler:
    """Answers each request with a C kernel for exactly its shapes."""

    def __init__(self, op: str, digest: str, folder: Path, verdict: str = "kernel") -> None:
        self.op, self.digest, self.verdict = op, digest, verdict
        self.path = k.build(folder, "k_any", k.DENSE_C)

    def __call__(self, asked: Any, **attrs: Any) -> tuple[str, str]:
        shapes = k.shapes_of(asked)
        if not any(dim < 0 for shape in shapes for dim in shape):
            attrs = {}  # no symbol, no bounds
        m, n = shapes[0][0], shapes[1][1]
        out = ",".join(f"s{-dim - 1}" if dim < 0 else str(dim) for dim in (m, n))
        attrs["_verdict"] = self.verdict
        record = k.record("k_any", self.op, self.digest, shapes, [out], self.path, **attrs)
        k.request("composite_install", record)
        return self.verdict, "measured"


def call(op: str, *shape: int) -> None:
    inputs = k.dense_inputs(*shape)
    np.testing.assert_allclose(
        k.call(op, inputs), k.dense_reference(**inputs), rtol=1e-5, atol=1e-5
    )


def test_bounds_of_a_class_that_the_call_is_outside_of(
    dense: tuple[str, str], tmp_path: Path
) -> None:
    """The kernel of the batch's class takes multiples of 4 only: others get an exact class."""
    op, digest = dense
    compile_kernel = Compiler(op, digest, tmp_path)
    with k.Worker(lambda asked: compile_kernel(asked, _divisors=[4])) as worker:
        for m in (4, 8, 12, 6, 6, 16):
            call(op, m)
            worker.wait()
    first = [k.shapes_of(asked)[0] for asked in worker.requests]
    assert first == [(4, 8), (-1, 8), (6, 8)]


def test_a_class_that_failed_is_not_asked_again(dense: tuple[str, str]) -> None:
    op, _ = dense
    with k.Worker(refuse) as worker:
        for _ in range(5):
            call(op, 4)
            worker.wait()
        explanation = k.explain(op, k.dense_inputs(4))
    assert len(worker.requests) == 1
    assert explanation["path"] == "expansion"
    assert "it is Sunday" in explanation["reason"]


def test_kernel_arrives_in_the_background(dense: tuple[str, str], tmp_path: Path) -> None:
    op, digest = dense
    go = threading.Event()
    compile_kernel = Compiler(op, digest, tmp_path)

    def answer(asked: Any) -> tuple[str, str]:
        go.wait(20)
        return compile_kernel(asked)

    before = k.stats()
    with k.Worker(answer) as worker:
        call(op, 4)
        assert k.explain(op, k.dense_inputs(4))["path"] == "compiling"
        assert k.reply("composite_pending")["pending"] == 1
        go.set()
        worker.wait()
        assert k.explain(op, k.dense_inputs(4))["path"] == "kernel"
        call(op, 4)
    after = k.stats()
    assert after["kernel_launches"] - before["kernel_launches"] == 1
    assert after["answered"] - before["answered"] == 1
    assert after["requests"] - before["requests"] == 1


def test_measured_slower(dense: tuple[str, str], tmp_path: Path) -> None:
    op, digest = dense
    before = k.stats()["kernel_launches"]
    with k.Worker(Compiler(op, digest, tmp_path, "expansion")) as worker:
        for _ in range(3):
            call(op, 4)
            worker.wait()
        assert "was not faster" in k.explain(op, k.dense_inputs(4))["reason"]
    assert len(worker.requests) == 1
    assert k.stats()["kernel_launches"] == before


@pytest.mark.parametrize("backend", ["auto", "tvm"])
@pytest.mark.parametrize("verdict", ["kernel", "expansion"])
def test_one_row_gets_a_kernel_of_its_own(
    dense: tuple[str, str], tmp_path: Path, verdict: str, backend: str
) -> None:
    """Whether or not that of any number of rows was found faster."""
    op, digest = dense
    with k.Worker(Compiler(op, digest, tmp_path, verdict)) as worker, k.options(backend):
        for m in (4, 6, 1, 1, 7, 1):
            call(op, m)
            worker.wait()
        explanation = k.explain(op, k.dense_inputs(1))
    assert [k.shapes_of(asked)[0] for asked in worker.requests] == [(4, 8), (-1, 8), (1, 8)]
    if "kernel" in (verdict, explanation["path"]):
        assert "for shapes [1,8]" in explanation["reason"]


def test_without_a_kernel_of_its_own_one_row_has_that_of_any_number(
    dense: tuple[str, str], tmp_path: Path
) -> None:
    op, digest = dense
    compile_kernel = Compiler(op, digest, tmp_path)

    def answer(asked: Any) -> tuple[str, str]:
        return refuse(asked) if k.shapes_of(asked)[0] == (1, 8) else compile_kernel(asked)

    before = k.stats()
    with k.Worker(answer) as worker:
        for m in (4, 6, 1, 1, 1):
            call(op, m)
            worker.wait()
        assert "for shapes [s0,8]" in k.explain(op, k.dense_inputs(1))["reason"]
    after = k.stats()
    assert len(worker.requests) == 3
    assert after["kernel_launches"] - before["kernel_launches"] == 3


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((1, 3, 5), [(1, -1), (-1, -2), (-2,)]),
        ((3, 1, 5), [(-1, 1), (1, -2), (-2,)]),
        ((1, 3, 1), [(1, -1), (-1, 1), (1,)]),
        ((1, 1, 1), [(1, 1), (1, 1), (1,)]),
    ],
)
def test_sizes_of_one_among_several_symbols(
    dense: tuple[str, str],
    tmp_path: Path,
    shape: tuple[int, int, int],
    wanted: list[tuple[int, ...]],
) -> None:
    op, digest = dense
    path = k.build(tmp_path, "k_any", k.DENSE_C)
    symbols = [(-1, -2), (-2, -3), (-3,)]
    record = k.record("k_any", op, digest, symbols, ["s0,s2"], path, _verdict="kernel")
    k.request("composite_install", record)
    with k.Worker(refuse) as worker:
        call(op, 2, 3, 4)  # has a kernel
        for _ in range(2):
            call(op, *shape)
            worker.wait()
    assert [k.shapes_of(asked) for asked in worker.requests] == [wanted]


def test_must_waits_for_its_kernel(dense: tuple[str, str], tmp_path: Path) -> None:
    """It is served as soon as the kernel is installed, before it is measured."""
    op, digest = dense
    compile_kernel = Compiler(op, digest, tmp_path, "unmeasured")
    served = threading.Event()

    def answer(asked: Any) -> tuple[str, str]:
        compile_kernel(asked)
        return ("kernel", "") if served.wait(20) else ("failed", "the call was not served")

    before = k.stats()
    with k.Worker(answer) as worker:
        for m in (4, 7):
            with k.options("tvm"):
                call(op, m)
                call(op, m)
            served.set()
            worker.wait()
            served.clear()
    after = k.stats()
    assert after["kernel_launches"] - before["kernel_launches"] == 4
    assert after["expansion_runs"] == before["expansion_runs"]
    assert [asked.attr["_must"].b for asked in worker.requests] == [True, True]


def test_must_overtakes_the_queue(dense: tuple[str, str], unique: Callable[[str], str]) -> None:
    ops = [unique("RtQueue") for _ in range(3)]
    for op in ops:
        k.register(k.dense(op))
    k.request("composite_worker", k.node("", "", running=True))  # nobody takes requests yet
    try:
        for op in ops:
            call(op, 4)
        caught: list[Exception] = []

        def must() -> None:
            try:
                with k.options("tvm"):
                    call(ops[2], 4)
            except tf.errors.FailedPreconditionError as error:
                caught.append(error)

        waiting = threading.Thread(target=must)
        waiting.start()
        time.sleep(0.3)
        taken = NodeDef.FromString(
            k.request("composite_next_request", k.node("", "", timeout_ms=0))
        )
        assert taken.op == ops[2]
        assert taken.attr["_must"].b
        done = k.node(taken.name, "", status="not_covered", reason="no such tile")
        k.request("composite_finish", done)
        waiting.join(20)
        assert len(caught) == 1
        assert "no such tile" in str(caught[0])
        with pytest.raises(tf.errors.NotFoundError, match="ticket"):
            k.request("composite_finish", done)
    finally:
        k.request("composite_worker", k.node("", "", running=False))
    assert k.reply("composite_pending")["pending"] == 0


def test_must_without_a_worker_raises(dense: tuple[str, str]) -> None:
    op, _ = dense
    with k.options("tvm"):
        with pytest.raises(tf.errors.FailedPreconditionError, match="nobody compiles"):
            call(op, 4)
        explanation = k.explain(op, k.dense_inputs(4))
    assert explanation["path"] == "expansion"
    assert "no compiler is running" in explanation["reason"]
    assert "waits for its kernel, or raises" in explanation["reason"]


def test_worker_that_stops_frees_the_waiting_call(dense: tuple[str, str]) -> None:
    op, _ = dense
    k.request("composite_worker", k.node("", "", running=True))
    stop = threading.Timer(
        0.3, lambda: k.request("composite_worker", k.node("", "", running=False))
    )
    stop.start()
    with k.options("tvm"), pytest.raises(tf.errors.FailedPreconditionError, match="nobody"):
        call(op, 4)
    stop.join()
    # The next worker is asked anew.
    with k.Worker(refuse) as worker:
        call(op, 4)
        worker.wait()
    assert len(worker.requests) == 1


def test_next_request_waits_no_longer_than_told() -> None:
    k.request("composite_worker", k.node("", "", running=True))
    begin = time.monotonic()
    assert k.request("composite_next_request", k.node("", "", timeout_ms=100)) == b""
    assert 0.05 < time.monotonic() - begin < 5
    k.request("composite_worker", k.node("", "", running=False))
    assert k.request("composite_next_request", k.node("", "", timeout_ms=60000)) == b""


def test_nothing_is_asked_without_a_worker(dense: tuple[str, str]) -> None:
    op, _ = dense
    before = k.stats()["requests"]
    call(op, 4)
    assert k.stats()["requests"] == before
    assert "no compiler is running" in k.explain(op, k.dense_inputs(4))["reason"]


def test_empty_input_asks_for_nothing(dense: tuple[str, str]) -> None:
    op, _ = dense
    with k.Worker(refuse) as worker:
        assert k.call(op, k.dense_inputs(0)).shape == (0, 5)
        worker.wait()
        assert "empty" in k.explain(op, k.dense_inputs(0))["reason"]
    assert not worker.requests


def test_finish_checks_its_status(dense: tuple[str, str]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="not_covered"):
        k.request("composite_finish", k.node("t0", "", status="maybe"))


def resident() -> float:
    """MB that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


@pytest.mark.slow
@pytest.mark.parametrize("path", ["kernel", "expansion"])
def test_ten_thousand_batch_sizes(dense: tuple[str, str], tmp_path: Path, path: str) -> None:
    op, digest = dense
    answer = Compiler(op, digest, tmp_path) if path == "kernel" else refuse
    before = k.stats()
    w, b = tf.ones([2, 3]), tf.zeros([3])
    with k.Worker(answer) as worker:
        held = 0.0
        for m in range(1, 10_001):
            y = k.call(op, {"x": tf.ones([m, 2]), "w": w, "b": b})
            if m == 100:
                held = resident()
        assert y.shape == (10_000, 3)
        grown = resident() - held
        worker.wait()
    after = k.stats()
    assert len(worker.requests) <= 3
    assert grown < 100
    used = "kernel_launches" if path == "kernel" else "expansion_runs"
    assert after[used] - before[used] > 9000
    optimized = after["optimized"] - before["optimized"]
    assert after["instantiations"] - before["instantiations"] - optimized <= 1
    assert optimized <= 4


def test_built_library(dense: tuple[str, str], tmp_path: Path) -> None:
    """What the initializer of a built library calls: program, kernels by address, slots."""
    import ctypes

    op = f"{dense[0]}Built"
    program = k.dense(op)
    loaded = ctypes.CDLL(str(k.build(tmp_path, "k_built", k.DENSE_C, "-DPARALLEL")))
    slot = ctypes.c_void_p.in_dll(loaded, "__TVMBackendParallelLaunch")
    k.library.composite_bind_slots(ctypes.byref(slot), None, None, None)
    assert slot.value
    function = ctypes.cast(loaded.__tvm_ffi_k_built, ctypes.c_void_p)
    shapes = [(-1, -2), (-2, -3), (-3,)]
    good = k.record("k_built", op, k.digest_of(program), shapes, ["s0,s2"])
    other = k.record("k_far", op, k.digest_of(program), shapes, ["s0,s2"], _isa="riscv-v1")
    records = [good.SerializeToString(), other.SerializeToString()]
    kernels = (k.Kernel * 2)(*[k.Kernel(r, len(r), function) for r in records])
    text = program.SerializeToString()
    message = ctypes.create_string_buffer(200)

    def register(count: int, data: bytes) -> int:
        size = ctypes.c_size_t(len(data))
        return int(
            k.library.composite_register_ops(
                data, size, kernels, ctypes.c_size_t(count), message, ctypes.c_size_t(200)
            )
        )

    assert register(2, text) == 0, message.value
    before = k.stats()["kernel_launches"]
    call(op, 50)
    assert k.stats()["kernel_launches"] == before + 1
    assert "k_far was refused" in k.explain(op, k.dense_inputs(4))["reason"]
    assert register(2, text) == 0  # loading twice is fine
    assert register(0, text[:40]) != 0
    assert message.value
