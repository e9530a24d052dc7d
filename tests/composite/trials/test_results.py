"""How far results are said to have moved."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from composite.trials import results


@pytest.mark.parametrize(
    ("found", "distance"),
    [([1.0, 2.0], 0.0), ([1.0, 2.5], 0.25), ([np.nan, 2.0], np.inf), ([1.0, np.inf], np.inf)],
)
def test_distance(found: list[float], distance: float) -> None:
    assert results._distance(np.array(found), np.array([1.0, 2.0])) == distance


def test_the_worst_output_is_told() -> None:
    one, two = np.array([1.0, 2.0], np.float32), np.array([1, 2])
    off = np.array([1.0, 2.2], np.float32)
    worst = results.deviation([one, off, two], [one, one, two], None)
    assert (worst.output, round(worst.distance, 6), worst.bound) == (1, 0.1, 1e-3)
    worst = results.deviation([off, two + 1], [one, two], 0.5)
    assert (worst.output, worst.is_small) == (1, False)
    worst = results.deviation([two + 1, off], [two, one], 0.5)
    assert (worst.output, worst.is_small) == (0, False)


def test_both_parts_of_complex_numbers_count() -> None:
    z = np.array([1 + 2j, 3 - 4j], np.complex64)
    assert results.deviation([z], [z], None).distance == 0
    assert round(results.deviation([z.conj()], [z], None).distance, 6) == 8 / 5


def test_what_nobody_looks_into_is_not_compared() -> None:
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)
    items = tf.data.experimental.to_variant(tf.data.Dataset.range(2))
    several = {"a": table.resource_handle, "b": tf.constant([1.0]), "c": items, "d": 2}
    found = results.flat(several)
    assert [one.tolist() for one in found] == [[], [1.0], [], 2]
    assert results.deviation(found, results.flat(several), None).is_small
