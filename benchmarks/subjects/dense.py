"""Dense + ReLU in float32, filter as given: a node of ours against the best of TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.dense_ways import OURS, PLAIN, time_call, time_dense
from benchmarks.rows import Row, emit
from benchmarks.timing import QUICK, Timings

# shape (m, k, n), depth of the stack, the least ratio that is asked for
SHAPES = [
    ((32, 1024, 1024), 8, 1.5),
    ((1, 1024, 1024), 16, 2.0),
    ((128, 512, 512), 8, None),
    ((1, 256, 256), 32, None),
    ((4, 16, 8), 32, None),
]


def rows() -> Iterator[Row]:
    """Best of TensorFlow over ours, for each shape: one call, and a node in a stack."""
    for shape, depth, at_least in SHAPES[: 2 if QUICK else None]:
        name = f"dense {'x'.join(map(str, shape))}"
        yield _row(f"{name}, a call", time_call(shape, seconds=2), at_least)
        yield _row(f"{name}, in a stack", time_dense(shape, depth=depth, seconds=4), at_least)


def _row(name: str, timings: Timings, at_least: float | None) -> Row:
    best = timings.fastest(list(PLAIN))
    times = ", ".join(f"{w} {timings.microseconds(w).median:.4g}" for w in timings.seconds)
    return Row.of(
        f"{name}: {best} / kernel",
        timings.ratio(best, OURS),
        "x",
        at_least=at_least,
        detail=f"us: {times}",
    )


if __name__ == "__main__":
    emit(rows())
