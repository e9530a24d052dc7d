"""Ops whose kernels can fail: they select by data."""

import tensorflow as tf

from composite import Composite


@Composite(
    "SelectedRows",
    inputs=["table: T", "rows: int32"],
    derived_attrs=["T: {float, double}"],
    outputs=["y: T"],
)
def selected_rows(table, rows):
    """Rows of a table, doubled."""
    return tf.gather(table, rows) * 2


@Composite("Factorials", inputs=["x: float"], outputs=["y: float"])
def factorials(x):
    """Factorials, for which there is no kernel."""
    return tf.exp(tf.math.lgamma(tf.nn.relu(x) + 1))
