"""Chained calls of TensorFlow's functions agree as ops; `make soak` runs more, with kernels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import tensorflow as tf

from composite.checking.oracle import Case
from composite.checking.skipped import Skipped
from composite.checking.ways import WAYS
from tests.conftest import no_compiling
from tests.corpus import bodies
from tests.corpus.run import BASIC, run

SEEDS = range(5000, 5011)


@pytest.fixture(autouse=True)
def _plain_graphs() -> Iterator[None]:
    """No grappler: it makes Tile of a product with an empty broadcast, which then raises."""
    before = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    yield
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False} | before)


def test_a_body_follows_from_its_seed() -> None:
    one, two = bodies.draw(7), bodies.draw(7)
    assert (one.text, one.label) == (two.text, two.label)
    assert [x.tobytes() for x in one.inputs] == [x.tobytes() for x in two.inputs]
    assert one.text != bodies.draw(8).text


@pytest.mark.slow
def test_a_draw() -> None:
    counts: dict[str, int] = {}
    with no_compiling():
        found = {seed: list(run(bodies.draw(seed), BASIC, counts)) for seed in SEEDS}
    assert {seed: findings for seed, findings in found.items() if findings} == {}
    assert counts["eager"] > 0.8 * len(SEEDS)
    assert counts["gradient"] > 0.3 * len(SEEDS)


def test_what_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    body = bodies.Body(1, ("return x * 2",), (tf.constant([1.0, 2.0]).numpy(),), "as it is")
    other = bodies.Body(2, ("return x * 3",), body.inputs, "as it is")
    counts: dict[str, int] = {}
    with no_compiling():
        assert list(run(body, ("eager", "gradient"), counts)) == []
        op = other.op()
        monkeypatch.setattr(op, "python_function", body.function)
        monkeypatch.setattr(bodies.Body, "op", lambda _: op)
        found = list(run(body, ("eager", "gradient"), counts))
    assert [finding.way for finding in found] == ["eager", "gradient"]
    assert counts == {"eager": 1, "gradient": 1}


def test_a_compiler_that_raises_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    body = bodies.Body(3, ("return x * 2",), (tf.constant([1.0, 2.0]).numpy(),), "as it is")

    def crashes(_: Case) -> None:
        raise Skipped("no kernel: compiling failed: IndexError: list index out of range")

    monkeypatch.setitem(WAYS, "kernel", crashes)
    (found,) = run(body, ("kernel",), {})
    assert found.way == "kernel" and "IndexError" in found.what
