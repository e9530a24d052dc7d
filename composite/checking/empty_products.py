"""Calls with empty products, in graphs that TensorFlow fuses nothing in.

TF 2.21's remapper makes one op of a product and of the bias behind it. Where that is oneDNN's, it
ends the process if the inner size, or the number of columns, is 0. A graph without composites does
the same, and a check must not: it runs such calls with the remapper off.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

from composite.checking.oracle import Case

_OPTION = "remapping"


@contextmanager
def unfused(case: Case) -> Iterator[None]:
    """Turns the remapper off, in the whole process, while a call with an empty product is run."""
    if not _has_empty_product(case):
        yield
        return
    before = tf.config.optimizer.get_experimental_options().get(_OPTION, True)
    tf.config.optimizer.set_experimental_options({_OPTION: False})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({_OPTION: before})


def _has_empty_product(case: Case) -> bool:
    """Whether a product may be empty: an input or a result is, or one is in the traced body."""
    if any(not x.size for x in (*case.sample.arrays(), *case.expected.values)):
        return True
    return case.graph is not None and case.graph.has_empty_product()
