"""Dense + ReLU in float32, filter as given: a node of ours against the best of TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.dense_ways import EXPANSION, OURS, PLAIN, time_dense
from benchmarks.rows import Row, emit

# shape (m, k, n), depth of the stack, the least ratio that is asked for
SHAPES = [
    ((32, 1024, 1024), 8, 1.5),
    ((1, 1024, 1024), 16, 2.0),
    ((128, 512, 512), 8, None),
    ((1, 256, 256), 32, None),
    ((4, 16, 8), 32, None),
]


def rows() -> Iterator[Row]:
    """Best of TensorFlow over ours, a row for each shape."""
    for shape, depth, at_least in SHAPES:
        timings = time_dense(shape, depth=depth, seconds=4)
        best = timings.fastest(list(PLAIN))
        times = ", ".join(
            f"{way} {timings.microseconds(way).median:.4g}" for way in (OURS, EXPANSION, *PLAIN)
        )
        yield Row.of(
            f"dense {'x'.join(map(str, shape))}: {best} / kernel",
            timings.ratio(best, OURS),
            "x",
            at_least=at_least,
            detail=f"us a node: {times}",
        )


if __name__ == "__main__":
    emit(rows())
