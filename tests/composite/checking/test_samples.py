"""Drawing calls from a declaration, and every op of the project that can be checked that way."""

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite.checking import shape_search
from composite.checking.oracle import Case
from composite.checking.sample import Sample
from composite.checking.samples import Drawn, given
from examples.digits.ops import fused_fully_connected
from examples.gallery.attention import attention
from examples.gallery.box_iou import box_iou
from examples.gallery.layer_norm_lstm import layer_norm_lstm_cell
from tests.composite import dense_ops
from tests.composite.checking import ops

pytestmark = pytest.mark.usefixtures("kernels_win")


def drawn(op, count, seed=0, **attrs):
    """`count` samples of an op."""
    import hypothesis

    found = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(Drawn(op, attrs, seed).strategy())
    def collect(sample):
        found.append(sample)

    collect()
    return found


def test_every_kind_of_attribute_and_input_is_drawn():
    samples = drawn(ops.attributes, 60)
    attrs = [sample.attrs for sample in samples]
    assert {a["mode"] for a in attrs} == {"up", "down"}
    assert {a["to"] for a in attrs} == {tf.float32, tf.float64}
    assert min(a["size"] for a in attrs) >= 2 and len({a["size"] for a in attrs}) > 1
    assert {len(a["sizes"]) for a in attrs} > {0, 1}
    assert all(np.float32(v) == v for a in attrs for v in a["scales"])
    assert all(isinstance(a["shape"], tf.TensorShape) for a in attrs)
    lists = [sample.inputs[0] for sample in samples]
    assert {len(one) for one in lists} == {1, 2, 3}
    assert {x.dtype.name for one in lists for x in one} == {"float32", "float16"}
    assert {len(sample.inputs[1]) for sample in samples} == {1, 2, 3}


def test_the_same_seed_draws_the_same():
    assert [s.describe() for s in drawn(ops.bend, 9)] == [s.describe() for s in drawn(ops.bend, 9)]


def test_shapes_that_the_body_takes_are_found():
    samples = drawn(dense_ops.dense, 150, act="RELU")
    shapes = [[x.shape for x in sample.arrays()] for sample in samples]
    fitting = [s for s in shapes if [len(x) for x in s] == [2, 2, 1] and s[0][1] == s[1][1]]
    assert len(fitting) > 20
    assert any(0 in x for s in shapes for x in s) and all(s.attrs["act"] == "RELU" for s in samples)


@pytest.mark.parametrize("op", [box_iou, ops.gates, ops.scores], ids=lambda op: op.op_name)
def test_shapes_that_depend_on_each_other_are_found(op):
    samples = drawn(op, 12)
    takes = [sample for sample in samples if Case(op, sample).expected.error is None]
    assert len(takes) >= 6
    assert len({tuple(x.shape for x in sample.arrays()) for sample in takes}) > 3


@pytest.mark.parametrize(
    ("op", "attrs", "dtypes"),
    [
        (attention, {"causal": False}, [[tf.float32]] * 3 + [[tf.bool] * 3]),
        (layer_norm_lstm_cell, {}, [[tf.float32]] * 9),
        (dense_ops.two_layers, {}, [[tf.float32]] * 3),  # takes a square matrix
    ],
    ids=["attention", "LSTM", "two layers"],
)
def test_what_an_error_tells_is_tried_first(op, attrs, dtypes):
    traces = []

    def traced(*arguments, trace=shape_search.traced):
        traces.append(arguments)
        return trace(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shape_search, "traced", traced)
        found = Drawn(op, attrs, seed=0)._known(dtypes, attrs)
    assert found
    assert len(traces) < 400  # draws alone make thousands, or more than a thousand


def test_a_search_of_shapes_does_not_end_the_process():
    def body(x, y):
        return tf.gather(x, y, batch_dims=2)

    progress = shape_search.traced(body, [tf.float32, tf.int32], ((3,), ()))
    assert progress.blamed


def test_variations_of_a_given_call():
    x = np.ones([4, 3], np.float32)
    samples = [make() for make in given(ops.bend, [x], {"by": 2.0})]
    labels = [sample.label for sample in samples]
    assert labels == [
        *("as given", "in float64", "with NaN", "with infinity", "with -infinity"),
        *("with denormal", "dims of 3 empty", "dims of 4 empty", "0-d"),
    ]
    by_label = dict(zip(labels, samples, strict=True))
    assert next(by_label["in float64"].arrays()).dtype == np.float64
    assert np.isnan(next(by_label["with NaN"].arrays())).sum() == 1
    assert next(by_label["dims of 4 empty"].arrays()).shape == (0, 3)
    assert next(by_label["0-d"].arrays()).shape == ()
    assert 0 < np.min(next(by_label["with denormal"].arrays())) < 1.2e-38


def test_what_is_said_of_a_sample():
    sample = Sample(([np.zeros([2], np.int32)], np.zeros([])), {"to": tf.half, "k": [1]}, "seed 3")
    assert sample.describe() == "[int32[2]], float64[], to=tf.float16, k=[1] (seed 3)"


@pytest.mark.slow
@pytest.mark.parametrize(
    "op",
    [
        *(dense_ops.dense, dense_ops.two_layers, dense_ops.scale, fused_fully_connected),
        *(ops.bend, ops.attributes, ops.square_only, ops.no_kernel, ops.numbers),
    ],
    ids=lambda op: op.op_name,
)
def test_every_op_of_the_project(op, tmp_path):
    report = composite.check(op, samples=8, report_dir=tmp_path)
    assert report.ok and report.row("eager").samples == 8
