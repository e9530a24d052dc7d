"""Kernels of random bodies agree with TensorFlow's ops; and a wrong compiler is caught by them.

`python -m tests.chains` runs more of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from composite.compiler.tvm.strategy.context import Context
from tests.chains import bodies
from tests.chains.run import run

SEEDS = range(500_000, 500_025)
# What kernels of once were wrong: values a row under both of their shapes, and twice; NaNs cast.
WRONG_ONCE = (10240, 10466, 10481, 10553)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [SEEDS, WRONG_ONCE], ids=["some", "wrong once"])
def test_kernels(seeds: Any, tmp_path: Path) -> None:
    found = {seed: run(bodies.draw(seed), tmp_path, symbolic=seed % 4 == 3) for seed in seeds}
    wrong = {seed: verdict.what for seed, verdict in found.items() if verdict.kind == "differs"}
    assert not wrong, "\n".join(
        f"seed {s}: {why}\n{bodies.draw(s).text}" for s, why in wrong.items()
    )
    assert sum(verdict.kind == "agrees" for verdict in found.values()) > 0.5 * len(found)


def test_the_same_seed_is_the_same_body() -> None:
    assert bodies.draw(11) == bodies.draw(11)
    assert bodies.draw(11).text != bodies.draw(12).text


@pytest.mark.slow
def test_an_output_that_is_not_written_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = bodies.Body(1, ("y0 = tf.floor(x0)",), ("y0", "y0"), (("float32", (5,)),))
    assert run(body, tmp_path).kind == "agrees"
    store = Context.store
    stored: set[Any] = set()

    def forgetful(self: Context, tensor: Any, *where: Any) -> None:
        if stored:
            return
        stored.add(tensor)
        store(self, tensor, *where)

    monkeypatch.setattr(Context, "store", forgetful)
    assert run(body, tmp_path).kind == "differs"
