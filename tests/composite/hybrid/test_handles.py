"""Who takes a handle: through calls, branches and loops, and not what merely passes it on."""

from __future__ import annotations

from collections import Counter
from typing import Any

import tensorflow as tf

from composite.hybrid import handles


def taken(concrete: Any, handle: str = "") -> Counter[str]:
    """The ops that take the last argument of a function, or another value of it."""
    definition = concrete.function_def
    library = {f.signature.name: f for f in concrete.graph.as_graph_def().library.function}
    library[definition.signature.name] = definition
    last = handle or definition.signature.input_arg[-1].name
    return Counter(n.op for n in handles.takers(definition.signature.name, last, library))


def test_a_handle_is_followed_to_where_it_is_used() -> None:
    variable = tf.Variable(tf.zeros([2]))

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def inner(x: Any) -> Any:
        return tf.cond(x[0] > 0.0, lambda: variable.assign_add(x), lambda: variable + 1.0)

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])
    def outer(x: Any) -> Any:
        def again(i: Any, y: Any) -> Any:
            return i + 1, inner(y) + tf.gather(variable, 0)

        return tf.while_loop(lambda i, _: i < 3, again, (0, x))

    found = taken(outer.get_concrete_function())
    assert found == Counter(AssignAddVariableOp=1, ReadVariableOp=2, ResourceGather=1)


def test_a_handle_that_a_function_returns_is_followed() -> None:
    variable, other = tf.Variable(1.0), tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([], tf.bool)])
    def chosen(first: Any) -> Any:
        handle = tf.cond(first, lambda: variable.handle, lambda: other.handle)
        kept = tf.raw_ops.Identity(input=handle)
        return tf.raw_ops.ReadVariableOp(resource=kept, dtype=tf.float32)

    assert taken(chosen.get_concrete_function()) == Counter(ReadVariableOp=1)


def test_what_runs_functions_in_its_own_way_takes_all_that_they_take() -> None:
    variable = tf.Variable(1.0)

    @tf.function(input_signature=[tf.TensorSpec([3], tf.float32)])
    def mapped(x: Any) -> Any:
        data = tf.data.Dataset.from_tensor_slices(x).map(lambda y: y * variable.assign_add(y))
        return data.reduce(0.0, lambda a, b: a + b)

    found = taken(mapped.get_concrete_function())
    assert found["MapDataset"] == found["AssignAddVariableOp"] == 1


def test_ops_of_tables() -> None:
    ops = [name for name in dir(tf.raw_ops) if handles.is_of_tables(name)]
    assert set(ops) >= handles.TABLE_READS
    assert {"LookupTableInsertV2", "LookupTableRemoveV2", "InitializeTableV2"} <= set(ops)
    assert not [name for name in handles.VARIABLE_READS if handles.is_of_tables(name)]
