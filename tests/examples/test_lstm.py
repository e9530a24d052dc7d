"""LSTM and GRU: in every way they can run, beside Keras in all its options, saved, and trained."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import composite
from examples.digits.model import Digits
from examples.lstm import layer, ops, scan_ops
from examples.lstm.train import train

pytestmark = [pytest.mark.many_cases, pytest.mark.usefixtures("kernels_win")]

RANDOM = np.random.default_rng(3)
BATCH, STEPS, INPUTS, UNITS = 2, 4, 5, 3
MASK = np.array([[0, 1, 0, 1], [1, 1, 0, 0]], bool)


def normal(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


X, H, C = normal(BATCH, STEPS, INPUTS), normal(BATCH, UNITS), normal(BATCH, UNITS)
LSTM = [normal(INPUTS, 4 * UNITS), normal(UNITS, 4 * UNITS), normal(4 * UNITS)]
GRU = [normal(INPUTS, 3 * UNITS), normal(UNITS, 3 * UNITS), normal(2, 3 * UNITS)]
BEFORE = [*GRU[:2], GRU[2][0]]
EYE = np.eye(2, dtype=np.float32)
KALMAN = [normal(BATCH, STEPS), normal(BATCH, 2), EYE, EYE + 0.1, 0.1 * EYE, EYE[:1], np.float32(1)]

CALLS: list[tuple[Any, list[Any], dict[str, Any]]] = [
    (ops.lstm_step, [X[:, 0], H, C, *LSTM], {"activation": "relu"}),
    (ops.gru_step, [X[:, 0], H, *GRU], {"recurrent_activation": "hard_sigmoid"}),
    (ops.gru_step, [X[:, 0], H, *BEFORE], {"reset_after": False}),
    (ops.lstm, [X, H, C, *LSTM, []], {}),
    (ops.lstm, [X, H, C, *LSTM, [MASK]], {"return_sequences": True, "go_backwards": True}),
    (ops.gru, [X, H, *GRU, []], {"return_sequences": True}),
    (ops.gru, [X, H, *BEFORE, [MASK]], {"reset_after": False, "zero_output_for_mask": True}),
    (scan_ops.rnn, [X, H, *(w[..., :UNITS] for w in LSTM)], {}),
    (scan_ops.sru, [X[..., :UNITS], C, GRU[1], normal(2, UNITS), normal(2, UNITS)], {}),
    (scan_ops.kalman, KALMAN, {}),
]
WAYS = ["eager", "tf.function", "unknown dims", "XLA", "shape function", "gradient", "kernel"]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0].op_name}-{call[2]}")
def test_ways_agree(call: tuple[Any, list[Any], dict[str, Any]], tmp_path: Path) -> None:
    op, inputs, attrs = call
    report = composite.check(op, *inputs, **attrs, samples=1, ways=WAYS, report_dir=tmp_path)
    assert [row.note for row in report.rows if row.note] == []


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0].op_name}-{call[2]}")
def test_every_way_and_variation_agrees(
    call: tuple[Any, list[Any], dict[str, Any]], tmp_path: Path
) -> None:
    op, inputs, attrs = call
    composite.check(op, *inputs, **attrs, samples=1, report_dir=tmp_path)
    composite.check(op, *inputs, **attrs, ways=["eager", "gradient"], report_dir=tmp_path)


def pair(kind: str, **options: Any) -> tuple[Any, Any]:
    """Our layer and Keras' own, with the same weights, none of which is zero."""
    made = [getattr(module, kind)(UNITS, **options) for module in (layer, keras.layers)]
    for one in made:
        one.build((BATCH, STEPS, INPUTS))
    weights = [normal(*w.shape) for w in made[0].get_weights()]
    for one in made:
        one.set_weights(weights)
    return made[0], made[1]


def results(one: Any, x: Any, **call: Any) -> list[Any]:
    """What a layer gives, and the gradients of the input and the weights."""
    x = tf.convert_to_tensor(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        given = tf.nest.flatten(one(x, **call))
        loss = tf.add_n([tf.reduce_sum(y * y) for y in given])
    variables = [weight.value for weight in one.trainable_weights]
    return [*given, *tape.gradient(loss, [x, *variables])]


def same(ours: list[Any], theirs: list[Any]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


OPTIONS: list[dict[str, Any]] = [
    {"go_backwards": True, "return_state": True},
    {"go_backwards": True, "return_sequences": True, "zero_output_for_mask": True},
    {"zero_output_for_mask": True},
    {"return_state": True, "return_sequences": True, "use_bias": False},
    {"activation": "relu", "recurrent_activation": "hard_sigmoid"},
    {"activation": None, "recurrent_activation": "tanh", "unroll": True},
    {"activation": "elu"},  # left to Keras
]  # fmt: skip


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_layer_is_keras_s(kind: str, options: dict[str, Any]) -> None:
    ours, theirs = pair(kind, **options)
    states = [H, C] if kind == "LSTM" else [H]
    calls: list[dict[str, Any]] = [{}, {"mask": MASK, "initial_state": states}]
    for call in calls:
        same(results(ours, X, **call), results(theirs, X, **call))
    assert type(ours).from_config(ours.get_config()).get_config() == ours.get_config()


def test_a_gru_that_resets_its_state() -> None:
    ours, theirs = pair("GRU", reset_after=False, return_sequences=True)
    same(results(ours, X, mask=MASK), results(theirs, X, mask=MASK))


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("dropout", [{"dropout": 0.5}, {"recurrent_dropout": 0.5}], ids=str)
def test_dropout(kind: str, dropout: dict[str, float]) -> None:
    ours, theirs = pair(kind, **dropout, seed=5)
    same(results(ours, X, training=True), results(theirs, X, training=True))
    same(results(ours, X), results(theirs, X))


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_stateful_layer_goes_on(kind: str) -> None:
    ours, theirs = pair(kind, stateful=True)
    for x in (X, -X):
        same(results(ours, x), results(theirs, x))
    ours.reset_state()
    theirs.reset_state()
    same(results(ours, X), results(theirs, X))


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell"])
def test_a_cell_in_keras_s_loop(kind: str) -> None:
    ours, theirs = (keras.layers.RNN(getattr(one, kind)(UNITS)) for one in (layer, keras.layers))
    for one in (ours, theirs):
        one.build((BATCH, STEPS, INPUTS))
    theirs.set_weights(ours.get_weights())
    same(results(ours, X, mask=MASK), results(theirs, X, mask=MASK))


@pytest.mark.parametrize(("merge", "every"), [("concat", True), ("sum", False), (None, True)])
def test_bidirectional(merge: str | None, every: bool) -> None:
    made = [
        keras.layers.Bidirectional(
            module.LSTM(UNITS, return_sequences=every, return_state=True), merge_mode=merge
        )
        for module in (layer, keras.layers)
    ]
    for one in made:
        one.build((BATCH, STEPS, INPUTS))
    made[1].set_weights(made[0].get_weights())
    same(results(made[0], X, mask=MASK), results(made[1], X, mask=MASK))
    assert type(made[0].backward_layer) is layer.LSTM


@pytest.mark.slow
def test_in_the_place_of_keras_s_layers_in_a_saved_model(tmp_path: Path) -> None:
    model = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Embedding(7, INPUTS, mask_zero=True),
            keras.layers.Bidirectional(keras.layers.LSTM(UNITS, return_sequences=True)),
            keras.layers.GRU(UNITS),
            keras.layers.Dense(2),
        ]
    )
    tokens = np.array([[1, 2, 0, 0], [3, 4, 5, 6], [0, 0, 0, 0]])
    expected = model(tokens)
    model.save(tmp_path / "theirs.keras")
    ours = layer.replaced(keras.models.load_model(tmp_path / "theirs.keras"))
    same([ours(tokens)], [expected])
    ours.save(tmp_path / "ours.keras")
    again = keras.models.load_model(tmp_path / "ours.keras")
    same([again(tokens)], [expected])
    ours.export(tmp_path / "exported", verbose=False)
    exported = tf.saved_model.load(tmp_path / "exported")
    same([exported.serve(tf.constant(tokens, tf.float32))], [expected])
    graph = tf.function(again.__call__).get_concrete_function(tf.TensorSpec([None, 4])).graph
    nodes = [op.type for op in graph.get_operations()]
    assert (nodes.count("LstmSequence"), nodes.count("GruSequence")) == (2, 1)


@pytest.mark.parametrize("dtype", ["float64", "mixed_bfloat16"])
def test_dtypes(dtype: str) -> None:
    ours, theirs = pair("LSTM", dtype=dtype, return_sequences=True)
    a, b = (tf.cast(one(X, mask=MASK), tf.float32) for one in (ours, theirs))
    np.testing.assert_allclose(a, b, rtol=1e-2 if "16" in dtype else 1e-6, atol=1e-2)


def test_sizes_that_are_known_when_it_runs() -> None:
    ours, theirs = pair("LSTM", return_sequences=True, return_state=True)
    spec = tf.TensorSpec([None, None, INPUTS], tf.float32)
    traced = tf.function(ours.__call__, input_signature=[spec])
    shapes = traced.get_concrete_function().output_shapes
    assert [one.as_list() for one in shapes] == [[None, None, UNITS], [None, UNITS], [None, UNITS]]
    for batch, steps in ((1, 1), (7, 1), (1, 5), (3, 11)):
        x = normal(batch, steps, INPUTS)
        same(list(traced(x)), list(theirs(x)))


def test_no_steps_leave_the_state_as_it_is() -> None:
    none = tf.zeros([BATCH, 0, INPUTS])
    y, h, c = ops.lstm(none, H, C, *LSTM, [], return_sequences=True)
    assert y.shape == (BATCH, 0, UNITS)
    same([h, c], [tf.constant(H), tf.constant(C)])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_xla_compiles_a_step_of_training(kind: str) -> None:
    ours, theirs = pair(kind, return_sequences=True)

    @tf.function(jit_compile=True)
    def compiled(x: Any) -> Any:
        return results(ours, x, mask=tf.constant(MASK))

    same(compiled(tf.constant(X)), results(theirs, X, mask=MASK))


def test_a_loop_is_one_node_whatever_the_steps() -> None:
    for steps in (3, 30):
        x = tf.TensorSpec([BATCH, steps, INPUTS])
        library = ops.lstm.expand(x, H, C, *LSTM, [], return_sequences=True)
        nodes = [node.op for node in library.function[0].node_def]
        assert nodes.count("StatelessWhile") == 1
        assert "MatMul" not in nodes


def test_the_filter_finds_a_line() -> None:
    times = np.arange(200, dtype=np.float64)
    z = 3 + 0.5 * times + 0.1 * RANDOM.standard_normal((1, 200))
    transition, observe = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    start = (np.zeros([1, 2]), 100 * np.eye(2))
    means, last = scan_ops.kalman(
        z, *start, transition, np.zeros([2, 2]), observe, np.float64(0.01)
    )
    np.testing.assert_allclose(means[0, -1], [3 + 0.5 * times[-1], 0.5], atol=0.1)
    assert 0 < last[0, 0] < 0.01


def test_the_script(run_python: Callable[..., Any]) -> None:
    printed = run_python("from examples.lstm.train import main\nmain(['--epochs', '2'])").stdout
    assert float(re.findall(r"differ by at most (\S+)", printed)[0]) < 1e-3
    assert float(re.findall(r"accuracy (\S+) on digits", printed)[0]) > 0.5


@pytest.mark.slow
def test_it_learns_to_read_digits() -> None:
    losses, accuracy = train(layer.LSTM, Digits.load(), epochs=10)
    assert losses[-1] < losses[0] / 20
    assert accuracy > 0.95
