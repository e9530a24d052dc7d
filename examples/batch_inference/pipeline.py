"""Batch inference with Apache Beam: a SavedModel with its libraries inside, in Beam's workers.

    python -m examples.batch_inference.pipeline MODEL OUT SHARD... [options of Beam]

A shard is a .npy file of rows; what the model makes of them is written into OUT under its name.
Workers are processes that have never seen the ops: the model brings them. Printed are the rows and
the kernels that all workers launched, as JSON.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions


class Predict(beam.DoFn):
    """Runs the model's default signature on shards, ``rows`` rows a call."""

    def __init__(self, model: str, out: str, rows: int) -> None:
        self._model, self._out, self._rows = model, out, rows

    def setup(self) -> None:
        """Load the model, once a worker; its machine code is trusted."""
        import composite

        loaded = composite.load_model(self._model, native_code=True)
        self._loaded = loaded  # whose variables live as long
        self._serve = loaded.signatures["serving_default"]

    def process(self, shard: str) -> Iterator[dict[str, int]]:
        """Write the results of a shard; yield what was done."""
        import tensorflow as tf

        import composite

        before = composite.stats()["kernel_launches"]
        (name,) = self._serve.structured_input_signature[1]
        given = np.load(shard)
        made = []
        for first in range(0, len(given), self._rows):
            batch = tf.constant(given[first : first + self._rows])
            (result,) = self._serve(**{name: batch}).values()
            made.append(result.numpy())
        np.save(Path(self._out, Path(shard).name), np.concatenate(made))
        yield {"rows": len(given), "kernels": composite.stats()["kernel_launches"] - before}


def added(counts: Sequence[dict[str, int]]) -> dict[str, int]:
    """Sums of counts, by name."""
    total: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            total[name] = total.get(name, 0) + count
    return total


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("shards", nargs="+")
    parser.add_argument("--rows", type=int, default=64, help="of a call")
    args, rest = parser.parse_known_args()
    Path(args.out).mkdir(parents=True, exist_ok=True)
    with beam.Pipeline(options=PipelineOptions(rest)) as pipeline:
        _ = (
            pipeline
            | beam.Create(args.shards)
            | beam.Reshuffle()
            | beam.ParDo(Predict(args.model, args.out, args.rows))
            | beam.CombineGlobally(added)
            | beam.Map(lambda total: print(json.dumps(total), flush=True))
        )


if __name__ == "__main__":
    main()
