"""`composite.tune` from a call to a kernel that others find.

With real kernels and, where the result must be known, with times that are made up.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite
from composite.kernels import chosen
from composite.kernels import key as keys
from composite.kernels.tuned import Database, Measured
from composite.tuning import local, session, space
from composite.tuning import tune as conductor
from composite.tuning.session import Budget
from tests.composite.dense_ops import dense, scale

SHAPES = {"input_": (24, 40), "filter_": (56, 40), "bias": (56,)}


def call(rows: int = 24, columns: int = 40) -> list[Any]:
    """A process has one kernel for many numbers of rows; other columns have another one."""
    random = np.random.default_rng(rows)
    shapes = [(rows, columns), (56, columns), (56,)]
    return [tf.constant(random.standard_normal(shape), tf.float32) for shape in shapes]


class Made:
    """A measurer that finds the first candidate fast, and all others slow."""

    workers = 1
    machine = keys.machine()

    def __init__(self, default: space.Built, *, luck: bool = False, elsewhere: float = 0.5) -> None:
        self.default = default
        self.luck = luck
        self.others = elsewhere
        self.fast = ""

    def submit(self, candidate: space.Built, seconds: float) -> Future[Measured]:
        self.fast = self.fast or candidate.code
        fast = candidate.code == self.fast
        if self.luck:  # in the first comparison, and in no other
            fast = seconds < session._FINAL
        found: Future[Measured] = Future()
        found.set_result(self.measured(0.5 if fast else 1.5))
        return found

    def measured(self, ratio: float) -> Measured:
        return Measured(ratio * 20, 20.0, ratio, ratio, ratio, 9, self.default.code)

    def elsewhere(self, candidate: space.Built, seconds: float) -> list[Measured]:
        return [self.measured(self.others)]

    def close(self) -> None:
        pass


def made_up(monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    monkeypatch.setattr(conductor, "_measurer", lambda *_: lambda default: Made(default, **options))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database that this process consults."""
    path = tmp_path / "tuned.json"
    monkeypatch.setenv(chosen.ENVIRONMENT, str(path))
    return path


def strategy(args: list[Any], act: str, op: Any = dense) -> str:
    """That of the kernel of a call, however it was measured beside the expansion."""
    with composite.options(backend="tvm"):
        op(*args, act=act)
        return str(composite.explain(op, *args, act=act).details["strategy"])


@pytest.mark.slow
def test_a_tuning_is_measured_kept_and_not_repeated(tmp_path: Path) -> None:
    told: list[composite.ProgressEvent] = []
    file = tmp_path / "t.json"
    found = composite.tune(
        dense, *call(), act="RELU", trials=2, database=file, progress=told.append
    )
    assert len(found.trials) == found.measured == 2
    assert found.us <= found.default_us
    assert (told[-1].done, told[-1].total) == (2, 2)
    assert "of the default's time" in told[-1].name
    for row in found.trials:
        assert row.choices and (row.us is None) == bool(row.error)
    (record,) = Database.read(file).records.values()
    assert (record.op, len(record.trials)) == ("TestDense", 2)
    assert record.call == "24x40, 56x40, 56; T=float32, act=RELU"
    again = composite.tune(dense, *call(), act="RELU", trials=2, database=file)
    assert again.measured == 0
    assert again.choices == found.choices
    assert sorted(map(str, again.trials)) == sorted(
        str(row._replace(is_new=False)) for row in found.trials
    )
    more = composite.tune(dense, *call(), act="RELU", trials=3, database=file)
    assert len(more.trials) == 3
    assert more.measured == sum(row.is_new for row in more.trials) == 1


def test_what_was_found_is_used(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(monkeypatch)
    args = call(25, 41)
    found = composite.tune(dense, *args, act="TANH", trials=2)
    assert found.choices == found.trials[0].choices != {}
    ((name, value),) = found.choices.items()
    assert found.ratio == pytest.approx(0.5)
    assert str(found) == (
        "TestDense(25x41, 56x41, 56; T=float32, act=TANH) -> "
        f"{name.partition('.')[2]}={value}: 10.0 us, "
        "0.50 of the default's 20.0 us, after 2 trials"
    )
    assert found.database == file
    with composite.options(backend="tvm"):
        y = dense(*args, act="TANH")
    np.testing.assert_allclose(y, dense.python_function(*args, "TANH"), atol=1e-5)
    assert strategy(args, "TANH") == "gemm (tuned)"


def test_a_kernel_compiled_later_is_made_as_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up(monkeypatch)
    monkeypatch.setattr(conductor, "_install", lambda _: None)
    file = tmp_path / "t.json"
    args = call(26, 42)
    composite.tune(dense, *args, act="RELU6", trials=1, database=file)
    monkeypatch.setattr(chosen, "_used", [])
    composite.use_tuned(file)
    assert strategy(args, "RELU6") == "gemm (tuned)"


def test_luck_is_not_enough(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(monkeypatch, luck=True)
    found = composite.tune(dense, *call(27), act="RELU", trials=3)
    assert [row.ratio for row in found.trials] == [0.5] * 3
    assert found.choices == {}
    assert found.ratio == 1.0
    (record,) = Database.read(file).records.values()
    (winner,) = record.winners.values()
    assert winner.code == winner.measured.against


@pytest.mark.slow
def test_slower_at_another_size_of_the_class_is_slower(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up(monkeypatch, elsewhere=1.3)
    specs = [("float32", ("n", 40)), *(("float32", SHAPES[name]) for name in ("filter_", "bias"))]
    found = composite.tune(dense, *specs, act="RELU", trials=1)
    assert found.call == "s0x40, 56x40, 56; T=float32, act=RELU"
    assert [row.ratio for row in found.trials] == [0.5]
    assert found.choices == {}


def test_a_wrong_candidate_is_a_failure_that_is_remembered(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up(monkeypatch)
    build = space.Space.build

    def wrong(self: space.Space, written: Any) -> space.Built:
        if written.digest != self.default.digest:
            raise space.Rejected("Mismatch: output 0 is off")
        return build(self, written)

    monkeypatch.setattr(space.Space, "build", wrong)
    found = composite.tune(dense, *call(28), act="RELU", trials=3)
    assert [(row.error, row.us) for row in found.trials] == [
        ("Mismatch: output 0 is off", None)
    ] * 3
    assert found.choices == {}
    monkeypatch.setattr(space.Space, "build", build)
    again = composite.tune(dense, *call(28), act="RELU", trials=3)
    assert again.measured == 0


@pytest.mark.slow
def test_weights_that_stay_are_packed_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(monkeypatch)
    x, w, b = call(29)
    found = composite.tune(dense, x, tf.Variable(w), b, act="RELU", trials=1)
    assert found.call == "29x40, constant 56x40, 56; T=float32, act=RELU"
    # What packs nothing is tuned as if nothing were constant.
    plain = composite.tune(scale, tf.Variable(x), tf.constant(2), trials=1)
    assert "constant" not in plain.call


@Composite(
    "TestTunedDense",
    inputs=["input_: float", "filter_: float", "bias: float"],
    attrs=['act: {"", "RELU", "RELU6", "TANH"} = ""'],
    outputs=["o: float"],
)
def own_dense(input_, filter_, bias, act):
    """An op that no other test calls, so that its first call compiles its kernel."""
    return dense(input_, filter_, bias, act=act)


def test_a_record_of_other_loops_is_not_followed(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made_up(monkeypatch)
    monkeypatch.setattr(conductor, "_install", lambda _: None)
    args = call(30, 43)
    composite.tune(own_dense, *args, act="RELU", trials=1)
    content = json.loads(file.read_text())
    (record,) = content["kernels"].values()
    (winner,) = record["winners"].values()
    winner["measured"]["against"] = "0123456789abcdef"
    file.write_text(json.dumps(content))
    assert strategy(args, "RELU", own_dense) == "gemm"
    assert "another version of the compiler" in caplog.text


def test_a_damaged_database_stops_a_tuning_but_no_call(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text("{")
    with pytest.raises(ValueError, match="no tuning database"):
        composite.tune(dense, *call(31), act="RELU", trials=1)
    with pytest.raises(ValueError, match="no tuning database"):
        composite.use_tuned(file)
    assert chosen.databases() == []
    assert "not as they were tuned" in caplog.text


@pytest.mark.parametrize(
    ("args", "options", "error", "text"),
    [
        (call(), {"trials": 0}, ValueError, "no budget: trials=0"),
        (call(), {"seconds": 0}, ValueError, "no budget"),
        (call()[:2], {}, TypeError, "bias"),
        ([tf.zeros((2, 3), tf.float16)] * 2, {}, TypeError, "bias"),
    ],
)
def test_what_cannot_be_tuned(args: Any, options: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        composite.tune(dense, *args, **options)
    with pytest.raises(TypeError, match="takes a composite op"):
        composite.tune(tf.matmul, *args)


def test_a_call_that_no_kernel_covers_says_why(file: Path) -> None:
    # The second is the answer of a process that has met many shapes: its expansion is for any.
    said = "(Dimensions must be equal, but are 3 and 5|MatMul: inner: sizes 3 and 5 differ)"
    place = r"dense_ops\.py:20:15"
    with pytest.raises(ValueError, match=rf"no kernel for dense\(2x3, 4x5, 4; .*{place}: {said}"):
        composite.tune(dense, tf.zeros((2, 3)), tf.zeros((4, 5)), tf.zeros((4,)), trials=1)
    assert not file.exists()


def test_a_kernel_without_choices_stays_as_it_is(file: Path) -> None:
    found = composite.tune(scale, tf.ones((3,)), tf.ones((3,), tf.int32), factor=0.25)
    assert found.trials == ()
    assert (found.choices, found.ratio) == ({}, 1.0)


@pytest.mark.slow
def test_the_budget_in_seconds_holds(file: Path) -> None:
    found = composite.tune(dense, *call(32), act="RELU", trials=1000, seconds=6.0)
    # The default kernel is made and checked whatever it takes.
    assert found.seconds <= 6.0 or not found.trials
    assert len(found.trials) < 1000


def test_a_trial_that_may_not_fit_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    budget = Budget(10, 20.0, start=100.0)
    assert budget.allows(9)
    assert not budget.allows(10)
    budget.spent(2.0)
    assert budget.allows(0)
    now = 112.0
    assert budget.allows(0)  # 2 s for it, 2 s to make what won, 3 * 1 s of comparisons
    now = 114.0
    assert not budget.allows(0)
    assert Budget(10, None, start=0.0).allows(0)


def test_a_second_process_uses_it(
    file: Path, monkeypatch: pytest.MonkeyPatch, run_python: Any
) -> None:
    made_up(monkeypatch)
    monkeypatch.setattr(conductor, "_install", lambda _: None)
    composite.tune(dense, *call(33), act="RELU", trials=1)
    code = """
import tensorflow as tf
import composite
from tests.composite.dense_ops import dense

x, w, b = tf.ones((33, 40)), tf.ones((56, 40)), tf.ones((56,))
with composite.options(backend="tvm"):
    dense(x, w, b, act="RELU")
    print(composite.explain(dense, x, w, b, act="RELU").details["strategy"])
"""
    assert run_python(code).stdout.strip() == "gemm (tuned)"


@pytest.mark.parametrize("copies", [1, 16])
def test_no_kernel_is_faster_than_the_clock_tells(
    copies: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Quick:
        """A chain whose function took no longer than the empty one did."""

        def __init__(self) -> None:
            self.copies = copies

        def seconds(self) -> float:
            return 5e-6

    monkeypatch.setattr(local.Local, "_activate", lambda *_: None)
    measurer: Any = object.__new__(local.Local)
    run = measurer._runner(Quick(), None, 5.1e-6)
    assert run() == pytest.approx(max(1e-8, 1e-7 / copies))
