"""Models of NNSmith compute the same with regions, and what would differ is found.

stored.jsonl has models of all of its operators; `make foreign` generates others, and runs them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from tests.foreign.nnsmith import generated, processes, shrink
from tests.foreign.nnsmith.call import Call, drawn
from tests.foreign.nnsmith.counts import Counts
from tests.foreign.nnsmith.model import Model, read
from tests.foreign.nnsmith.run import run
from tests.unmeasured import kernels_serve

LINES = (Path(__file__).parent / "stored.jsonl").read_text("utf-8").splitlines()


def of(function: Callable[..., Any], *specs: tf.TensorSpec, seed: int = 0) -> Model:
    """A model of one function."""
    concrete = tf.function(function, autograph=False).get_concrete_function(*specs)
    outputs = tuple(tensor.name for tensor in concrete.outputs)
    return Model(seed, (), concrete.graph.as_graph_def(), (), outputs)


@pytest.mark.slow
def test_stored_models() -> None:
    total = Counts()
    with kernels_serve():
        for line in LINES:
            counts = Counts()
            assert run(read(line), counts) == ""
            total += counts
    assert total.models == len(LINES)
    assert len(total.ops) == 60
    assert total.launches > total.regions > 0
    assert total.with_kernels > total.models / 2


def test_a_line_has_all_of_a_model() -> None:
    assert [read(line).line() for line in LINES] == LINES


def test_models_are_called_in_each_way() -> None:
    calls = [drawn(read(line)) for line in LINES]
    assert {one.held for one in calls} == {"inputs", "constants", "variables"}
    assert {one.derived for one in calls} == {False, True}


CHANGED: dict[str, Callable[[Any], Any]] = {
    "another number": lambda y: tf.tensor_scatter_nd_add(y, [[0] * y.shape.rank], [0.01]),
    "no number": lambda y: tf.tensor_scatter_nd_update(y, [[0] * y.shape.rank], [float("nan")]),
    "another shape": lambda y: y[tf.newaxis],
    "another dtype": lambda y: tf.cast(y, tf.float64),
}


OPS, REGIONS, GRAPH = range(3)  # in this order the functions of a call are made


def with_others(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any], ways: Collection[int]
) -> None:
    """Has these functions of a call return something else."""
    function, number = Call.function, itertools.count()

    def changed(call: Call) -> Any:
        made = function(call)
        if next(number) not in ways:
            return made
        return lambda *given: list(map(change, made(*given)))

    monkeypatch.setattr(Call, "function", changed)


@pytest.mark.parametrize("change", CHANGED)
def test_what_differs_is_told(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = of(lambda x: tf.tanh(x) * 2.0, tf.TensorSpec([4, 8]))
    with_others(monkeypatch, CHANGED[change], {REGIONS})
    counts = Counts()
    assert run(model, counts).startswith("call 0: output ")
    assert counts.by_tensorflow == 0


def power(x: Any, y: Any) -> Any:
    """Integers, which TensorFlow refuses where y is negative."""
    return tf.pow(x, y) + 1


INTEGERS = tf.TensorSpec([16], tf.int32)


def test_what_tensorflow_refuses_is_to_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model, counts = of(power, INTEGERS, INTEGERS), Counts()
    assert any(x.min() < 0 for x in drawn(model).values.values())
    assert run(model, counts) == ""
    assert counts.refused == 1
    with_others(monkeypatch, tf.zeros_like, {REGIONS})
    told = run(model, Counts())
    assert told.startswith("call 0: TensorFlow refuses it: ")
    assert "Integers to negative integer powers are not allowed" in told


def test_what_is_refused_with_regions_alone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model = of(lambda x, y: x + y, INTEGERS, INTEGERS)
    with_others(monkeypatch, lambda y: tf.pow(2, y), {REGIONS})
    assert run(model, Counts()).startswith("call 0: it is refused: ")


def test_what_tensorflows_graphs_do_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    model, counts = of(lambda x: x - 1, INTEGERS), Counts()
    with_others(monkeypatch, lambda y: y + 1, {REGIONS, GRAPH})
    assert run(model, counts) == ""
    assert counts.by_tensorflow == 1


def test_roundings_decide_what_is_made_whole() -> None:
    spec = tf.TensorSpec([40, 40], tf.float32)
    model = of(lambda x: tf.floor(tf.exp(tf.math.log(tf.abs(tf.round(x * 9))))), spec)
    with kernels_serve():
        assert run(model, Counts()) == ""


def test_a_model_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    def differs(model: Model, _: Counts) -> str:
        ops = [node.op for node in model.graph.node]
        return "it differs" if "Tanh" in ops and "Sum" in ops else ""

    monkeypatch.setattr(shrink, "run", differs)
    spec = tf.TensorSpec([4, 8])
    model = of(lambda x: (tf.exp(x), tf.reduce_sum(tf.tanh(tf.sqrt(x) * 2.0), 1) + 1.0), spec)
    found = shrink.shrunk(model)
    assert [node.op for node in found.graph.node] == ["Placeholder", "Tanh", "Const", "Sum"]
    assert len(found.outputs) == 1


BROKEN = LINES[0].replace('"outputs": ["', '"outputs": ["no_')


@pytest.mark.slow
def test_a_model_that_ends_its_process_is_told() -> None:
    counts, (told,) = processes.run_all([BROKEN])
    assert counts.models == 1
    assert f"seed {read(BROKEN).seed}: its process ended with 1: " in told
    assert "no_" in told


def test_the_models_behind_it_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def process(lines: Sequence[str], folder: Path) -> str:
        run = list(itertools.takewhile(lambda line: line != BROKEN, lines))
        entries = [{"seed": 1, "told": "", "counts": {"models": 1}} for _ in run]
        (folder / "log").write_text("\n".join(map(json.dumps, entries)), "utf-8")
        return "with SIGSEGV: " if len(run) < len(lines) else "with 0: "

    monkeypatch.setattr(processes, "_process", process)
    counts, found = processes.run_all([LINES[1], BROKEN, LINES[2], LINES[3]])
    assert counts.models == 4
    assert found == [f"seed {read(BROKEN).seed}: its process ended with SIGSEGV: "]


@pytest.mark.slow
@pytest.mark.skipif(not generated.is_there, reason=generated.MISSING)
def test_the_same_seed_is_the_same_model() -> None:
    seed = read(LINES[1]).seed
    assert generated.generated(seed - 1, 2)[1] == LINES[1]


def test_without_nnsmith_the_command_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generated, "is_there", False)
    with pytest.raises(RuntimeError, match=r"make \.venv-nnsmith/installed\.stamp"):
        generated.generated(0, 1)


def test_counts_are_summed() -> None:
    one = Counts(models=1, launches=2, ops={"core.Add": 1, "core.Mul": 1})
    two = Counts(models=1, differ=1, ops={"core.Add": 1})
    assert one + two == Counts(models=2, launches=2, differ=1, ops={"core.Add": 2, "core.Mul": 1})
