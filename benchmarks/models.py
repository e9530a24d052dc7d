"""Models that others wrote, accelerated: beside a tf.function of them, without and with XLA.

`composite.accelerate` may take what XLA makes of a model, too; a row says what it took, and the
times of all that it had to choose from, called as directly as what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

import composite
from benchmarks.rows import Row, emit
from benchmarks.timing import KINDS, QUICK, interleave
from benchmarks.works.models import MODELS, inputs

OURS, PLAIN, XLA = "ours", "TensorFlow", "TensorFlow with XLA"
BATCHES = (1,) if QUICK else (1, 8, 32)
SLOWEST = 0.97  # of the best of TensorFlow's ways


def compared(name: str, model: Any, batch: int, *, seconds: float) -> Row:
    """How many times as long the best of TensorFlow's ways takes as ours."""
    x = inputs(model, batch)
    given = x[0] if len(x) == 1 else x

    def infer(y: Any) -> Any:
        return model(y, training=False)

    fast = composite.accelerate(infer, given, xla=True)
    ways: dict[str, Callable[[], Any]] = {
        OURS: lambda: fast(given),
        PLAIN: _called(tf.function(infer, autograph=False), given),
        XLA: _called(tf.function(infer, autograph=False, jit_compile=True), given),
    }
    timings = interleave(ways, seconds=seconds)
    best = timings.fastest([PLAIN, XLA])
    times = ", ".join(f"{way} {timings.microseconds(way).median:.0f} us" for way in ways)
    report = fast.report
    choices = {"original": report.original_us, "regions": report.accelerated_us}
    if report.xla is not None and not report.xla.refusal:
        choices["XLA"] = report.xla.microseconds
    times += "; direct: " + ", ".join(f"{way} {us:.0f} us" for way, us in choices.items())
    return Row.of(
        f"{name}, batch {batch}: best of TensorFlow / accelerated",
        timings.ratio(best, OURS),
        "x",
        at_least=SLOWEST,
        detail=f"{times}; {report.verdict}",
        data={"model": name, "batch": batch, "best": best},
    )


def _called(function: Any, given: Any) -> Callable[[], Any]:
    return lambda: function(given)


def rows() -> Iterator[Row]:
    """Each model at each batch."""
    for name, build in MODELS.items():
        if KINDS and name not in KINDS:
            continue
        model = build()
        for batch in BATCHES:
            yield compared(name, model, batch, seconds=6.0)


if __name__ == "__main__":
    emit(rows())
