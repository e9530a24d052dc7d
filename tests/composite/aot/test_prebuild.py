"""Which kernels come of a stated call."""

import json
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.aot import stated_calls
from tests.composite import dense_ops
from tests.composite.loop_ops import scan

CALL: dict[str, Any] = {
    "x": ("float32", ("batch", "steps", 8)),
    "h": ("float32", ("batch", 8)),
    "w": ("float32", (8, 8)),
}


def shapes(request):
    return [list(dims) for dims in request.in_shapes]


def test_one_row_and_one_step_are_calls_of_their_own():
    stated = stated_calls.request(scan, CALL)
    assert shapes(stated) == [["s0", "s1", 8], ["s0", 8], [8, 8]]
    assert [shapes(one) for one in stated_calls.of_one(stated)] == [
        [[1, "s0", 8], [1, 8], [8, 8]],
        [["s0", 1, 8], ["s0", 8], [8, 8]],
        [[1, 1, 8], [1, 8], [8, 8]],
    ]
    assert [len(one.hint) for one in stated_calls.of_one(stated)] == [1, 1, 0]
    assert shapes(stated) == [["s0", "s1", 8], ["s0", 8], [8, 8]]


@pytest.mark.parametrize(
    ("batch", "steps", "count"), [(4, "steps", 1), ("batch", 3, 1), (4, 3, 0), (None, None, 3)]
)
def test_dims_of_the_first_input_alone_are_rows_and_steps(batch, steps, count):
    call = CALL | {"x": ("float32", (batch, steps, "units")), "h": ("float32", (batch, "units"))}
    assert (
        len(stated_calls.of_one(stated_calls.request(scan, call | {"w": ("float32", (8, 8))})))
        == count
    )


@pytest.mark.slow
def test_a_library_has_them_for_loops_alone(tmp_path):
    dense: dict[str, Any] = {"input_": ("float32", ("batch", 8)), "filter_": ("float32", (5, 8))}
    composite.build(
        [scan, dense_ops.dense],
        tmp_path / "lib",
        name="ones",
        signatures={"scan": [CALL], "dense": [{**dense, "bias": ("float32", (5,)), "act": "RELU"}]},
    )
    kernels = json.loads((tmp_path / "lib" / "manifest.json").read_text())["kernels"]
    found = sorted((kernel["op"], kernel["shapes"].partition(", ")[0]) for kernel in kernels)
    assert found == [
        ("TestDense", "s0x8"),
        ("TestScan", "1x1x8"),
        ("TestScan", "1xs0x8"),
        ("TestScan", "s0x1x8"),
        ("TestScan", "s0xs1x8"),
    ]
    assert {kernel["algebra"] for kernel in kernels} == {"equal by algebra"}
    random = np.random.default_rng(0)
    with composite.options(backend="tvm"):
        for rows, steps, wanted in [(1, 5, "[1,s0,8]"), (3, 1, "[s0,1,8]"), (1, 1, "[1,1,8]")]:
            sizes = [(rows, steps, 8), (rows, 8), (8, 8)]
            inputs = [tf.constant(random.standard_normal(s), tf.float32) for s in sizes]
            told = composite.explain(scan, *inputs)
            assert f"for shapes {wanted}" in told.reason
            assert told.algebra == "equal by algebra"
            np.testing.assert_allclose(
                scan(*inputs), scan.python_function(*inputs), rtol=1e-5, atol=1e-6
            )


def test_names_of_a_call_and_of_its_record():
    @composite.Composite(
        "PrebuildNamed",
        inputs=["x: float", "more: N * float"],
        derived_attrs=["N: int >= 1"],
        outputs=["y: float"],
    )
    def named(x, more):
        return tf.add_n(more) + x

    dims = ("float32", ("n", 4, "m"))
    assert stated_calls.names(named, {"x": dims, "more": [dims, dims]}) == {
        "x": "in0", "more[0]": "in1", "more[1]": "in2", "y": "out0", "n": "s0", "m": "s1"
    }  # fmt: skip
    with pytest.raises(ValueError, match="y names two of the tensors and dims of named"):
        stated_calls.names(named, {"x": ("float32", ("y",)), "more": [("float32", ("y",))]})
