"""Loops as one launch on a GPU made of threads, by one block and by several."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.tvm.cuda.build import CudaKernel
from composite.compiler.tvm.show import show_gpu
from composite.compiler.tvm.target import CudaTarget
from tests.compiler.tvm.conftest import library_of
from tests.compiler.tvm.read.cells import (
    gru,
    gru_before,
    lstm,
    over,
    put,
    rows,
    simple_rnn,
    stacked,
)
from tests.gpu.shim.cases import BFLOAT16, Batch, Case, written
from tests.gpu.shim.emulator import Emulator, as_float64

Shapes = Sequence[Sequence[int | str]]


def gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients of the squares of what a function gives."""

    def step(*arrays: Any) -> Any:
        floats = [x for x in arrays if x.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(floats)
            results = tf.nest.flatten(function(*arrays))
            total = tf.add_n([tf.reduce_sum(y * y) for y in results])
        return tape.gradient(total, floats)

    return step


def mixed(x: Any, w: Any) -> Any:
    """Element-wise work and reductions, of sizes that are multiples of nothing."""

    def step(t: Any, h: Any, ys: Any, s: Any) -> Any:
        h = tf.tanh(h * w + x[t])
        part = h / (1.0 + tf.reduce_sum(h * h, 1, keepdims=True))
        return part, put(ys, t, tf.reduce_max(part, 0)), s + tf.reduce_mean(part)

    h = x[0]
    return over(tf.shape(x)[0], step, h, rows(tf.shape(x)[0], h[0]), tf.constant(4.0, x.dtype))[::2]


def kept(x: Any, w: Any) -> Any:
    """What is carried and given, and what each trip leaves."""

    def step(t: Any, h: Any, ys: Any) -> Any:
        h = tf.nn.softmax(h + x[t]) * w
        return h, put(ys, t, tf.reduce_max(h, 0))

    h, ys = over(tf.shape(x)[0], step, tf.fill(tf.shape(x)[1:], tf.constant(4.0, x.dtype)),
                 rows(tf.shape(x)[0], x[0, 0]))  # fmt: skip
    return h, stacked(ys, x[0, 0])


def layer(batch: int | str, steps: int | str, inputs: int, units: int, gates: int) -> Shapes:
    wide = gates * units
    return [[batch, steps, inputs], [inputs, wide], [units, wide], [wide]]


def case(function: Callable[..., Any], shapes: Shapes, **more: Any) -> Case:
    runs = more.pop("runs", ({},))
    blocks = more.pop("multiprocessors", (1, 2, 5))
    return Case(
        function, shapes, "", runs=runs, rtol=3e-5, atol=more.pop("atol", 1e-5), launches=None,
        multiprocessors=blocks, **more,
    )  # fmt: skip


STEPS = [{"s0": 0}, {"s0": 1}, {"s0": 6}]
SIZES = [{"s0": b, "s1": t} for b, t in ((1, 2), (4, 5), (33, 3))]
MASKED = [np.float32] * 4 + [np.bool_]

CASES = {
    "loop_rnn": case(simple_rnn, layer(3, "s0", 5, 20, 1), runs=STEPS),
    "loop_lstm": case(lstm, layer(5, "s0", 7, 20, 4), runs=STEPS),
    "loop_lstm_of_one": case(lstm, layer(1, 3, 16, 32, 4)),
    "loop_lstm_of_sizes": case(lstm, layer("s0", "s1", 8, 36, 4), runs=SIZES),
    # Five groups of columns: blocks have them for good, and share their rows.
    "loop_lstm_held": case(
        lstm, layer("s0", 4, 8, 20, 4), runs=[{"s0": 1}, {"s0": 70}], multiprocessors=(1, 5, 12)
    ),
    "loop_lstm_of_many_units": case(lstm, layer(2, 3, 4, 130, 4)),
    "loop_lstm_half": case(lstm, layer(5, 4, 8, 32, 4), dtypes=[np.float16], atol=2e-3),
    "loop_lstm_half_held": case(
        lstm,
        layer("s0", 4, 8, 136, 4),
        runs=[{"s0": 1}, {"s0": 70}],
        dtypes=[np.float16],
        atol=1.5e-2,
        multiprocessors=(1, 40),
    ),
    "loop_lstm_bfloat16": case(
        lstm, layer("s0", 3, 8, 20, 4), runs=[{"s0": 35}], dtypes=[BFLOAT16], atol=3e-2
    ),
    # Each warp has as much of the inner dimension: pairs of the state are read as they lie.
    "loop_lstm_half_whole": case(
        lstm, layer("s0", 3, 8, 128, 4), runs=[{"s0": 3}], dtypes=[np.float16], atol=1.5e-2
    ),
    "loop_lstm_bfloat16_whole": case(
        lstm, layer("s0", 3, 8, 128, 4), runs=[{"s0": 3}], dtypes=[BFLOAT16], atol=1.2e-1
    ),
    "loop_gru_half": case(
        gru, [*layer(3, 4, 8, 24, 3), [3, 4]], dtypes=[*[np.float16] * 4, np.bool_], atol=3e-3
    ),
    "loop_gru": case(gru, [*layer(5, 7, 6, 32, 3), [5, 7]], dtypes=MASKED),
    "loop_gru_before": case(
        gru_before, [["s0", 5, 8], [8, 48], [24, 48], [24, 24]], runs=[{"s0": 1}, {"s0": 4}]
    ),
    "loop_mixed": case(mixed, [["s0", 5, 13], [13]], runs=STEPS[1:]),
    "loop_kept": case(kept, [["s0", 70, 36], [36]], runs=STEPS[1:]),
    "loop_lstm_gradient": case(gradients(lstm), layer(3, 4, 5, 12, 4), atol=1e-4),
    "loop_gru_gradient": case(
        gradients(gru), [*layer(2, 3, 5, 12, 3), [2, 3]], dtypes=MASKED, atol=1e-4
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results(batch: Batch, name: str) -> None:
    batch.check(name)


@pytest.mark.parametrize(
    ("cell", "units", "dtype", "level", "held"),
    [
        (lstm, 512, np.float32, "sm_80", True),
        (lstm, 1024, np.float32, "sm_80", False),  # more than the smallest GPUs of a level have
        (lstm, 1024, np.float32, "sm_90", True),
        (lstm, 2000, np.float32, "sm_90", False),
        (simple_rnn, 2000, np.float32, "sm_90", False),  # more columns than blocks
        (lstm, 512, np.float16, "sm_90", True),
        (lstm, 1024, np.float16, "sm_80", True),  # in registers
        (lstm, 2000, np.float16, "sm_90", False),
    ],
)
def test_weights_are_held_where_they_fit(
    cell: Any, units: int, dtype: Any, level: str, held: bool
) -> None:
    gates = 4 if cell is lstm else 1
    case = Case(cell, layer("s0", "s1", 8, units, gates), "", [dtype], level=level)
    kernel = written("k", case)
    (launch,) = (one for one in kernel.plan.launches if one.resident)
    assert ("weights_" in kernel.source) == held
    assert launch.dynamic <= (224 << 10 if level == "sm_90" else 96 << 10)
    # In each step the blocks meet at its end; and between gates that are made one by one.
    own = kernel.source[kernel.source.rindex(f"{launch.function}(") :]
    assert own.count("composite_meet(") == (2 if held or gates == 1 else 3)


def test_a_state_that_only_products_read_is_kept_as_they_round_it(batch: Batch) -> None:
    """An LSTM's is, its cell is not; a GRU's state is also what its gates leave of it."""
    for name, halves in (("loop_lstm_half_whole", 1), ("loop_gru_half", 0)):
        kernel = batch.kernels[name]
        (launch,) = (one for one in kernel.plan.launches if one.resident)
        (head,) = {*re.findall(rf" {launch.function}\(([^)]*)\)", kernel.source)}
        assert len(re.findall(r"half\* work\d", head)) == halves
        assert re.search(r"float\* work\d", head)


def test_what_is_combined_with_products_is_loaded_before_them(batch: Batch) -> None:
    kernel = batch.kernels["loop_lstm_half_whole"]
    (launch,) = (one for one in kernel.plan.launches if one.resident)
    text = kernel.source[kernel.source.rindex(f"{launch.function}(") :]
    products = text.index("composite_mma_float16")
    assert "in3[" in text[:products]
    assert "in3[" not in text[products:]


def test_it_is_shown_that_blocks_wait_for_each_other() -> None:
    shapes = [[2, 3, 4], [4, 8], [8, 8], [8]]
    library = library_of(simple_rnn, [tf.TensorSpec(shape) for shape in shapes])
    text = show_gpu(library, shapes, "cuda", CudaTarget.level("sm_80"))
    launch = r"// kernel_2\(.*\): \[2\] / 1 blocks of 256 threads, that wait for each other, "
    assert re.search(launch + r"\d+ bytes shared\n", text)
    assert text.count("that wait for each other") == 1


def test_what_other_blocks_write_is_read_from_memory(batch: Batch) -> None:
    for name in CASES:
        kernel = batch.kernels[name]
        for launch in kernel.plan.launches:
            (head,) = {*re.findall(rf" {launch.function}\([^)]*\)", kernel.source)}
            assert ("__restrict__" in head) != launch.resident


def without_meeting(kernel: CudaKernel, number: int) -> CudaKernel | None:
    """The kernel without a place where blocks meet; None if it has no more."""
    places = [*re.finditer(r"goal_\d+ = [^;]+;\s+composite_meet\([^;]+;", kernel.source)]
    if number >= len(places):
        return None
    name = f"{kernel.name}_without_{number}"
    start, end = places[number].span()
    source = kernel.source[:start] + kernel.source[end:]
    launches = [
        replace(one, function=one.function.replace(kernel.name, name))
        for one in kernel.plan.launches
    ]
    return replace(
        kernel,
        name=name,
        source=source.replace(f"{kernel.name}_", f"{name}_"),
        plan=replace(kernel.plan, launches=tuple(launches)),
    )


@pytest.mark.slow
def test_each_place_where_blocks_meet_is_needed(batch: Batch, tmp_path: Path) -> None:
    """Without one a block reads what another one has not written yet, or writes over it."""
    names = ["loop_lstm_of_many_units", "loop_gru_before", "loop_mixed"]
    broken = [
        (batch.cases[name], kernel)
        for name in names
        for number in range(9)
        if (kernel := without_meeting(batch.kernels[name], number)) is not None
    ]
    emulator = Emulator([kernel for _, kernel in broken], tmp_path)
    for case, kernel in broken:
        arrays = case.arrays(case.runs[-1])
        wanted = tf.nest.flatten(case.function(*(tf.constant(as_float64(a)) for a in arrays)))
        found = [
            emulator.run(
                kernel, arrays, case.shapes, [np.float32] * len(wanted), reverse=reverse,
                multiprocessors=5,
            )
            for reverse in (False, True)
        ]  # fmt: skip
        assert any(
            not np.allclose(one, right, rtol=1e-3, atol=1e-3)
            for results in found
            for one, right in zip(results, wanted, strict=True)
        ), kernel.name
