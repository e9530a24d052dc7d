"""What nobody reads is in no region, and gone from functions that have regions."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tests.runtime.regions.test_form_regions import assert_close, with_regions
from tests.runtime.regions.test_partition import (
    FLOATS,
    calls,
    library_of,
    ops,
    regions,
    regions_of,
    traced,
)


def test_what_nobody_reads() -> None:
    def body(x: Any) -> Any:
        y = tf.exp(x) * 2.0
        tf.matmul(tf.sin(y), x)
        return y

    rewritten, found = regions(body)
    (region,) = found.values()
    assert not {"MatMul", "Sin"} & {*ops(region), *ops(rewritten)}
    assert len(region.signature.output_arg) == 1
    x = tf.ones([4, 4])
    assert_close(with_regions(body, x)[0], [tf.exp(x) * 2.0])


def test_what_has_an_effect_or_is_waited_for_stays() -> None:
    variable = tf.Variable(1.0)

    def body(x: Any) -> Any:
        waited = tf.tanh(x)
        variable.assign_add(1.0)
        with tf.control_dependencies([waited]):
            return tf.exp(x) * 2.0 + tf.sin(x)

    rewritten, found = regions(body)
    assert ops(rewritten)["AssignAddVariableOp"] == 1
    assert ops(rewritten)["Tanh"] == 1
    assert len(calls(rewritten)) == len(found)
    with_regions(body, tf.ones([4, 4]))
    assert_close([variable], [2.0])


def test_what_callers_wait_for_stays() -> None:
    def body(x: Any) -> Any:
        tf.tanh(x, name="end")
        return tf.exp(x) * 2.0

    library = library_of(traced(body, [FLOATS]))
    assert ops(regions_of(library)[0])["Tanh"] == 0
    library.function[0].signature.control_output.append("end")
    library.function[0].control_ret["end"] = "end"
    assert ops(regions_of(library)[0])["Tanh"] == 1
