"""Sizes at which each branch of a kernel runs that sizes decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf
from tvm import tirx
from tvm.tirx import stmt as tir_stmt

from composite.compiler import tvm as backend
from composite.compiler.tvm.proof import telling
from tests.compiler.tvm.conftest import library_of

TWO_CORES = backend.Target.of("x86-64-v3", 2)


def constant(value: int) -> Any:
    return tirx.const(value, "int64")


def kernel(body: Callable[[Any, Any], Any]) -> Any:
    """A function of a buffer whose size varies: `body` is given the size, and a store."""
    size = tirx.Var("s0", "int64")
    buffer = tirx.decl_buffer((size,), "float32", "in0")
    store = tir_stmt.BufferStore(buffer, tirx.const(1.0, "float32"), [constant(0)])
    return tirx.PrimFunc([buffer], body(size, store))


def loop(name: str, extent: Any, body: Callable[[Any], Any]) -> Any:
    counter = tirx.Var(name, "int64")
    return tirx.For(counter, constant(0), extent, tir_stmt.ForKind.SERIAL, body(counter))


def test_both_sides_of_a_condition_are_taken() -> None:
    function = kernel(lambda n, store: tirx.IfThenElse(n < constant(100), store, None))
    assert sorted(one["s0"] for one in telling([function], {}, [])) == [1, 127]
    assert [one["s0"] for one in telling([function], {}, [{"s0": 48}])] == [127]
    assert telling([function], {"s0": 200}, [{"s0": 200}]) == []


def test_a_condition_in_a_branch_is_taken_where_the_branch_is() -> None:
    def body(n: Any, store: Any) -> Any:
        odd = tirx.Mod(n, constant(2)).equal(constant(1))
        return tirx.IfThenElse(n > constant(60), tirx.IfThenElse(odd, store, None), None)

    found = [one["s0"] for one in telling([kernel(body)], {}, [{"s0": 9}, {"s0": 8}])]
    assert sorted(n % 2 for n in found) == [0, 1] and min(found) > 60


def test_what_is_left_of_the_last_piece_is_taken() -> None:
    """The condition hangs on the counter of a loop."""

    def body(n: Any, store: Any) -> Any:
        pieces = tirx.Div(n + constant(7), constant(8))
        return loop("p", pieces, lambda p: tirx.IfThenElse(p * 8 + 8 > n, store, None))

    assert [one["s0"] % 8 != 0 for one in telling([kernel(body)], {}, [{"s0": 64}])] == [True]
    assert [one["s0"] > 8 for one in telling([kernel(body)], {}, [{"s0": 7}])] == [True]
    assert telling([kernel(body)], {}, [{"s0": 63}]) == []


def test_what_runs_in_a_first_trip_is_run_in_a_later_one() -> None:
    """Of rows in a branch for wide ones, the second is another mistake than the first."""
    rows, columns = tirx.Var("s0", "int64"), tirx.Var("s1", "int64")
    buffer = tirx.decl_buffer((rows, columns), "float32", "in0")
    store = tir_stmt.BufferStore(buffer, tirx.const(1.0, "float32"), [constant(0), constant(0)])
    wide = tirx.IfThenElse(columns >= constant(32), store, None)
    function = tirx.PrimFunc([buffer], loop("r", rows, lambda _: wide))
    known = [{"s0": 1, "s1": 40}, {"s0": 7, "s1": 10}]
    assert [one["s0"] > 1 <= one["s1"] // 32 for one in telling([function], {}, known)] == [True]


def test_a_loop_of_no_trips_is_a_branch() -> None:
    function = kernel(lambda n, store: loop("i", tirx.Div(n, constant(16)), lambda _: store))
    assert [one["s0"] >= 16 for one in telling([function], {}, [{"s0": 7}])] == [True]
    assert [one["s0"] >= 16 for one in telling([function], {}, [{"s0": 48}])] == [False]


def test_what_a_kernel_keeps_of_sizes_is_known() -> None:
    """In variables, and inside of loops in cells of one integer."""

    def body(n: Any, store: Any) -> Any:
        half, cell = tirx.Var("half", "int64"), tirx.decl_buffer((1,), "int64", "c", scope="local")
        zero = constant(0)
        kept = [
            tir_stmt.AllocBuffer(cell),
            tir_stmt.BufferStore(cell, half + 1, [zero]),
            tirx.IfThenElse(tirx.BufferLoad(cell, [zero]) > constant(50), store, None),
        ]
        inside = loop("i", n, lambda _: tirx.SeqStmt(kept))
        return tirx.SeqStmt([tirx.Bind(half, tirx.Div(n, constant(2))), inside])

    assert [one["s0"] >= 100 for one in telling([kernel(body)], {}, [{"s0": 9}])] == [True]


def test_sizes_of_many_elements_are_not_chosen() -> None:
    size = tirx.Var("s0", "int64")
    buffer = tirx.decl_buffer((size, constant(100_000)), "float32", "in0")
    store = tir_stmt.BufferStore(buffer, tirx.const(1.0, "float32"), [constant(0), constant(0)])
    function = tirx.PrimFunc([buffer], tirx.IfThenElse(size < constant(64), store, None))
    assert [one["s0"] for one in telling([function], {}, [])] == [1]


@pytest.mark.parametrize("known", [48, 300])
def test_a_kernel_for_several_threads_is_told_from_that_for_one(known: int) -> None:
    library = library_of(lambda x: tf.cumsum(x, 1), [tf.TensorSpec([None, 21])])
    written = backend.write(library, [("s0", 21)], target=TWO_CORES)
    ((_, function),) = written.module.functions.items()
    (found,) = telling([function], {}, [{"s0": known}])
    assert (found["s0"] > 100) == (known == 48)
    assert [n > 100 for (n,) in written.generate("k").telling] == [False, True]
