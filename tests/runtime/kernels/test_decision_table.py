"""Where a class of calls is divided between its kernel and the expansion."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite.compiler.emit.timings import KernelTiming, timings
from tests.runtime import kernel_support as k

pytestmark = pytest.mark.usefixtures("kernel_ops")

# The kernel is faster up to 8 rows and from 128 on.
SIZES = [8, 32, 128]
WINS = [True, False, True]


def measured(sizes: list[int] = SIZES, wins: list[bool] = WINS) -> dict[str, Any]:
    """The attributes of a record that was measured at these sizes."""
    return {
        "_sizes": sizes,
        "_kernel_times": [float(size) for size in sizes],
        "_expansion_times": [
            2.0 * size if win else 0.5 * size for size, win in zip(sizes, wins, strict=True)
        ],
        "_kernel_wins": wins,
        "_kernel_us": 32.0,
        "_expansion_us": 16.0,
    }


def install(folder: Path, op: str, digest: str, **attrs: Any) -> None:
    path = k.build(folder, "k_rows", k.DENSE_C)
    shapes = [(-1, 8), (8, 5), (5,)]
    k.request("composite_install", k.record("k_rows", op, digest, shapes, ["s0,5"], path, **attrs))


@pytest.fixture
def dense(unique: Callable[[str], str]) -> tuple[str, str]:
    op = unique("RtDivided")
    return op, k.register(k.dense(op))


def path_of(op: str, rows: int) -> str:
    path: str = k.explain(op, k.dense_inputs(rows))["path"]
    before = k.stats()["kernel_launches"]
    k.call(op, k.dense_inputs(rows))
    ran = "kernel" if k.stats()["kernel_launches"] > before else "expansion"
    assert path == ran
    return ran


def test_the_geometric_mean_divides(dense: tuple[str, str], tmp_path: Path) -> None:
    install(tmp_path, *dense, **measured())
    found = {rows: path_of(dense[0], rows) for rows in (1, 8, 16, 17, 32, 64, 65, 128, 5000)}
    wins = [rows for rows, path in found.items() if path == "kernel"]
    assert wins == [1, 8, 16, 65, 128, 5000]
    with k.options("tvm"):
        assert path_of(dense[0], 32) == "kernel"


def test_explain_has_the_numbers(dense: tuple[str, str], tmp_path: Path) -> None:
    install(tmp_path, *dense, _error=3.1e-7, _error_unit="|y| against float64", **measured())
    told = k.explain(dense[0], k.dense_inputs(20))
    assert told["reason"] == (
        "the kernel was not faster: 32 us, against 16 us for the expansion, at s0=32; the kernel "
        "below s0=17, the expansion below s0=65, the kernel from there on; within 3.1e-07 of |y| "
        "against float64"
    )
    assert list(told["sizes"].i) == SIZES
    assert list(told["kernel_wins"].b) == WINS
    assert told["kernel_us"] == 32
    told = k.explain(dense[0], k.dense_inputs(7))
    assert "for shapes [s0,8], [8,5], [5]: 8 us, against 16 us" in told["reason"]
    assert told["error"] == pytest.approx(3.1e-7)


def test_times_below_the_clock_are_not_told(dense: tuple[str, str], tmp_path: Path) -> None:
    times: dict[str, Any] = {"_kernel_us": 6.33e-5, "_expansion_us": 0.5, "_verdict": "expansion"}
    install(tmp_path, *dense, **times)
    told = k.explain(dense[0], k.dense_inputs(20))["reason"]
    assert "less than 0.01 us, against 0.5 us for the expansion" in told


def test_several_symbols_count_by_their_product(
    unique: Callable[[str], str], tmp_path: Path
) -> None:
    op = unique("RtDivided")
    digest = k.register(k.dense(op))
    path = k.build(tmp_path, "k_all", k.DENSE_C)
    shapes = [(-1, -2), (-2, 5), (5,)]
    attrs = measured([64, 256], [True, False])
    k.request("composite_install", k.record("k_all", op, digest, shapes, ["s0,5"], path, **attrs))
    for m, inner, expected in [(16, 8, "kernel"), (8, 16, "kernel"), (17, 8, "expansion")]:
        inputs = k.dense_inputs(m, inner)
        assert k.explain(op, inputs)["path"] == expected, (m, inner)


def test_a_new_measurement_replaces_the_division(dense: tuple[str, str], tmp_path: Path) -> None:
    install(tmp_path, *dense, **measured())
    record = k.record("k_rows", *dense, [(-1, 8), (8, 5), (5,)], ["s0,5"], None)
    for name, value in measured([4], [False]).items():
        record.attr[name].CopyFrom(k.attr(value))
    k.request("composite_install", record)
    assert path_of(dense[0], 1) == "expansion"
    assert path_of(dense[0], 5000) == "expansion"


@pytest.mark.parametrize(
    ("attrs", "named"),
    [
        ({"_sizes": [8, 8]}, "_sizes: they are positive and ascend"),
        ({"_sizes": [0, 8]}, "_sizes: they are positive and ascend"),
        ({"_sizes": [8]}, "_sizes: 1 of them, with 2 _kernel_times"),
        ({"_kernel_wins": [True]}, "and 1 _kernel_wins"),
    ],
)
def test_a_malformed_table_is_refused(
    dense: tuple[str, str], tmp_path: Path, attrs: dict[str, Any], named: str
) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=named):
        install(tmp_path, *dense, **{**measured([4, 8], [True, False]), **attrs})


def test_the_division_counts_with_an_unknown_batch(dense: tuple[str, str], tmp_path: Path) -> None:
    """The node stays in the graph, and decides when it runs."""
    op, digest = dense
    install(tmp_path, op, digest, **measured())
    inputs = k.dense_inputs(8)
    spec = tf.TensorSpec([None, 8])

    @tf.function(input_signature=[spec])
    def run(x: Any) -> Any:
        call = {"x": x, "w": inputs["w"], "b": inputs["b"]}
        return k.call(op, call, _composite_program=digest) + 0.0

    for rows, launches in [(8, 1), (32, 0), (200, 1)]:
        before = k.stats()["kernel_launches"]
        run(tf.ones([rows, 8]))
        assert k.stats()["kernel_launches"] - before == launches, rows


class Built:
    """What the initializer of a built library passes on."""

    def __init__(self, record: Any, function: int) -> None:
        class Kernel(ctypes.Structure):
            _fields_ = (("record", ctypes.c_char_p), ("size", ctypes.c_size_t),
                        ("function", ctypes.c_void_p))  # fmt: skip

        self._content = record.SerializeToString()
        self._kernel = Kernel(self._content, len(self._content), function)

    def register_timings(self, text: str | None) -> None:
        encoded = None if text is None else text.encode()
        k.library.composite_register_timings(ctypes.byref(self._kernel), encoded)


def test_timings_of_a_built_library(dense: tuple[str, str], tmp_path: Path) -> None:
    op, digest = dense
    loaded = ctypes.CDLL(str(k.build(tmp_path, "k_built", k.DENSE_C)))
    function = ctypes.cast(loaded.__tvm_ffi_k_built, ctypes.c_void_p)
    record = k.record("k_built", op, digest, [(-1, 8), (8, 5), (5,)], ["s0,5"])
    built = Built(record, function.value or 0)
    timing = KernelTiming(32, SIZES, [1.0, 2.0, 3.0], [2.0, 1.0, 9.5], WINS)
    text = timings("m", {"k_other": timing, "k_built": timing})
    built.register_timings(text)
    assert [path_of(op, rows) for rows in (4, 40, 400)] == ["kernel", "expansion", "kernel"]
    assert k.explain(op, k.dense_inputs(400))["expansion_us"] == 9.5
    # Whatever is wrong with the text, the kernel stays as it was.
    for wrong in (None, "", "k_built", text.replace("k_built", "k_none"), text[:300],
                  text.replace("2.0", "two"), json.dumps(json.loads(text), indent=2),
                  text.replace("[8, 32, 128]", "[8, 128]")):  # fmt: skip
        built.register_timings(wrong)
        assert k.explain(op, k.dense_inputs(40))["kernel_us"] == 2.0
    slower = KernelTiming(32, [32], [2.0], [1.0], [False])
    built.register_timings(timings("m", {"k_built": slower}))
    assert path_of(op, 4) == "expansion"
    np.testing.assert_allclose(
        k.call(op, k.dense_inputs(4)), k.dense_reference(**k.dense_inputs(4)), rtol=1e-5, atol=1e-5
    )
