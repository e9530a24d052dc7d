"""Which functions of a library get regions when one of them is instantiated."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tests.runtime.regions.scans import TRIPS, WIDTH, gate, numbers, scan
from tests.runtime.regions.test_form_regions import assert_close, with_regions, without


def outside(row: Any, h: Any) -> Any:
    """A step that no kernel covers, and that has two regions."""
    return tf.sin(tf.math.lgamma(tf.cos(row + h) * 3.0)) * 2.0


def test_bodies_of_loops_that_are_inside_get_none() -> None:
    x = numbers(TRIPS, WIDTH)
    for step, regions in ((gate, 1), (outside, 2)):
        for body in (
            lambda x, step=step: scan(x, step),
            tf.function(lambda x, step=step: scan(x, step), autograph=False),
        ):
            found, count = with_regions(lambda x, body=body: body(x), x)
            assert count == regions
            assert_close(found, without(body, x))
