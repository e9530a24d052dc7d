"""Results as `--json` keeps them, small and invented."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.rows import Row
from benchmarks.sides.team import Comparison
from benchmarks.subjects import models, peers
from benchmarks.timing import Timings
from benchmarks.works.model_work import ModelWork
from benchmarks.works.work import Work

_VERSIONS = {"tf-composite": "0.1.0", "tensorflow": "2.21.0", "onnxruntime": "1.31.1"}
_MISSING = {"torch_cpu": "No module named 'torch'"}


def row(work: Work, times: dict[str, float]) -> Row:
    """A row of a comparison in which each column takes so many microseconds, give or take."""
    noise = np.array([0.9, 1.0, 1.2]) * 1e-6
    notes = {"ours": "kernel: gemm", "bare kernel": "gemm"}
    columns = {
        column: {"setting": "", "note": notes.get(column, ""), "difference": 1e-7}
        for column in times
    }
    if "TensorFlow" in columns:
        columns["TensorFlow"]["setting"] = "XLA"
    # Against the noise of the others: a ratio then has a spread.
    seconds = {c: us * (noise[::-1] if c == "ours" else noise) for c, us in times.items()}
    return peers.row(Comparison(work, Timings(seconds), columns, _MISSING))


def rows_of_models() -> list[Row]:
    """A model that was measured, one that was not, and the means."""
    times = {"ours": 100.0, "TensorFlow": 300.0, "ONNX Runtime": 80.0, "regions alone": 150.0}
    told = {"setting": "", "note": "runs with regions, 2.00 times as fast; and so on"}
    noise = np.array([0.9, 1.0, 1.2]) * 1e-6
    timings = Timings({way: us * noise for way, us in times.items()})
    columns = {way: {**told, "difference": 0.0} for way in times}
    found = list(models.rows_of(Comparison(ModelWork("tagger", 8, ""), timings, columns, {})))
    missing = Row("BERT, batch 8", 0, "", detail="ImportError: keras-hub is not installed")
    return [*found, missing, *models.means(found)]


def results() -> dict[str, Any]:
    """Two works of three forms, a growth, the roofline, models and another subject."""
    call = Work("dense", (32, 64, 64))
    kernel = {"bare kernel": 20.0}
    compared = [
        row(call, {"ours": 30, "ours, tf.function": 60, **kernel, "TensorFlow": 90}),
        row(call.stacked(), {"ours": 22.0, **kernel, "TensorFlow": 44.0, "ONNX Runtime": 11.0}),
        row(Work("conv 3x3", (2, 8, 8, 3, 4)), {"ours": 1234.5, "TensorFlow": 1200.0}),
    ]
    grown = row(Work("softmax", (8, 100), depth=4), {"ours": 0.456, "TensorFlow": 3.21})
    grown.data["growth"] = "softmax over the width"
    all_threads = {"threads": 2, "all_threads": True}
    roofline = [
        Row("FMA peak, 2 threads", 100.0, "GFLOP/s", data={"flops": 1e11, **all_threads}),
        Row(
            "memory, read 262144 KB, 2 threads",
            12.34,
            "GB/s",
            data={"level": "memory", "capacity": None, "bandwidth": 1.234e10, **all_threads},
        ),
    ]
    who = Row("sides", 3, "", detail="", data={"versions": _VERSIONS, "missing": _MISSING})
    eager = Row("eager call 4x8x16: kernel / MatMul", 0.8123, "x", 0.79, 0.84, at_most=1.2)
    subjects = {
        "roofline": roofline,
        "peers": [who, *compared],
        "growth": [who, grown],
        "eager": [eager, Row("memory | growth", 12, "MB")],
        "models": [who, *rows_of_models()],
    }
    return {
        "date": "2026-11-21",
        "quick": True,
        "machine": {
            "cpu": "A Processor",
            "cores": 2,
            "vectors": "AVX2",
            "memory_gb": 16,
            "system": "Linux 6.1",
            "python": "3.11.7",
        },
        "failed": [],
        "seconds": {"roofline": 8, "peers": 340, "growth": 60, "eager": 9},
        "subjects": {name: [asdict(row) for row in rows] for name, rows in subjects.items()},
    }
