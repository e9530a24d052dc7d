"""Which stages may be a chain, and what is left to store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from composite.compiler.tvm.plan.plan import make_plan
from composite.compiler.tvm.plan.row_chains import row_chains
from composite.compiler.tvm.plan.stage import Stage
from composite.compiler.tvm.read.reader import read_function
from tests.compiler.tvm.conftest import library_of

HEADS = [(4, 30, 8), (4, 20, 8), (4, 20, 6)]


def attention(q: Any, k: Any, v: Any) -> Any:
    return tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)


def chains(
    function: Callable[..., Any],
    shapes: Sequence[tuple[int, ...]],
    may_join: Callable[[Stage], bool] = lambda _: True,
    pays: Callable[[Stage], bool] = lambda _: True,
) -> list[Stage]:
    specs = [tf.TensorSpec(s, tf.float32) for s in shapes]
    plan = make_plan(read_function(library_of(function, specs), shapes))
    return row_chains(plan, may_join, pays)


def parts(stages: list[Stage]) -> list[int]:
    return [len(stage.parts) for stage in stages]


def test_attention_stores_its_result_alone() -> None:
    (chain,) = chains(attention, HEADS)
    assert chain.shape == (4, 30)
    assert len(chain.parts) == 3
    assert [t.shape for t in chain.stores] == [(4, 30, 6)]


def test_what_is_read_elsewhere_is_stored() -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True))
        return tf.matmul(weights, v), tf.reduce_sum(weights, 1)

    (chain, _) = chains(function, HEADS)
    assert [t.shape for t in chain.stores] == [(4, 30, 20), (4, 30, 6)]


def test_it_is_no_chain_where_it_does_not_pay() -> None:
    assert parts(chains(attention, HEADS, pays=lambda _: False)) == [0, 0, 0]
    assert parts(chains(attention, HEADS, may_join=lambda s: s.shape[-1] != 6)) == [2, 0]


def test_a_stage_without_a_product_is_no_chain() -> None:
    assert parts(chains(tf.nn.softmax, [(30, 20)])) == [0]


def test_a_factor_that_is_read_whole_is_made_before() -> None:
    def function(x: Any, w: Any) -> Any:
        return tf.matmul(x, tf.matmul(x, w), transpose_a=True)

    assert parts(chains(function, [(30, 20), (20, 20)])) == [0, 0]


def test_columns_of_a_factor_are_rows_of_the_result() -> None:
    def function(x: Any, w: Any) -> Any:
        return tf.nn.softmax(tf.matmul(x, w, transpose_a=True))

    assert parts(chains(function, [(20, 30), (20, 25)])) == [2]
