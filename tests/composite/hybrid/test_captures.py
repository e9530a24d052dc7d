"""What functions capture: what is read becomes a part of a module, what is written is an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import hybrid
from composite.hybrid.freezing import freeze

X = tf.TensorSpec([4], tf.float32)
INDEX = tf.constant([1], tf.int64)


class Written(tf.Module):
    """State, and all ways to write it."""

    def __init__(self) -> None:
        super().__init__()
        self.variable = tf.Variable(tf.zeros([4]))
        self.mutable = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)
        self.dense = tf.lookup.experimental.DenseHashTable(
            tf.int64, tf.int64, 0, empty_key=-1, deleted_key=-2
        )
        self.generator = tf.random.Generator.from_seed(1)

    def assign(self, x: Any) -> None:
        self.variable.assign(x)

    def assign_add(self, x: Any) -> None:
        self.variable.assign_add(x)

    def assign_slice(self, x: Any) -> None:
        self.variable[:2].assign(x[:2])

    def scatter(self, x: Any) -> None:
        self.variable.scatter_nd_add([[0]], x[:1])

    def scatter_slices(self, x: Any) -> None:
        self.variable.scatter_update(tf.IndexedSlices(x[:1], [0]))

    def draw(self, x: Any) -> None:
        self.generator.normal(tf.shape(x))

    def insert(self, _: Any) -> None:
        self.mutable.insert(INDEX, INDEX)

    def remove(self, _: Any) -> None:
        self.mutable.remove(INDEX)

    def insert_dense(self, _: Any) -> None:
        self.dense.insert(INDEX, INDEX)

    def erase(self, _: Any) -> None:
        self.dense.erase(INDEX)


Write = Callable[[Any], None]


def in_itself(write: Write, x: Any) -> Any:
    write(x)
    return x * 2.0


def in_a_called_function(write: Write, x: Any) -> Any:
    return tf.function(lambda x: in_itself(write, x), autograph=False)(x) + 1.0


def in_a_branch(write: Write, x: Any) -> Any:
    return tf.cond(x[0] > 0.0, lambda: in_itself(write, x), lambda: x)


def in_a_case(write: Write, x: Any) -> Any:
    return tf.switch_case(tf.cast(x[0], tf.int32), [lambda: in_itself(write, x), lambda: x])


def in_a_loop(write: Write, x: Any) -> Any:
    again = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, in_itself(write, y)), (0, x))
    return again[1]


def in_a_condition(write: Write, x: Any) -> Any:
    def goes_on(i: Any, _: Any) -> Any:
        write(x)
        return i < 3

    return tf.while_loop(goes_on, lambda i, y: (i + 1, y * 2.0), (0, x))[1]


def in_a_branch_of_a_loop_of_a_called_function(write: Write, x: Any) -> Any:
    inner = tf.function(lambda x: in_a_branch(write, x), autograph=False)
    return in_a_loop(inner, x)


PLACES = [
    in_itself, in_a_called_function, in_a_branch, in_a_case, in_a_loop, in_a_condition,
    in_a_branch_of_a_loop_of_a_called_function,
]  # fmt: skip


@pytest.fixture(scope="module")
def state() -> Written:
    return Written()


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
@pytest.mark.parametrize(
    ("way", "op"),
    [
        ("assign", "AssignVariableOp"),
        ("assign_add", "AssignAddVariableOp"),
        ("assign_slice", "ResourceStridedSliceAssign"),
        ("scatter", "ResourceScatterNdAdd"),
        ("scatter_slices", "ResourceScatterUpdate"),
        ("draw", "RngReadAndSkip"),
        ("insert", "LookupTableInsertV2"),
        ("remove", "LookupTableRemoveV2"),
        ("insert_dense", "LookupTableInsertV2"),
        ("erase", "LookupTableRemoveV2"),
    ],
)
def test_writes_are_an_error(state: Written, way: str, op: str, place: Any) -> None:
    write = getattr(state, way)
    concrete = tf.function(lambda x: place(write, x), autograph=False).get_concrete_function(X)
    kind = "table" if op.startswith("LookupTable") else "variable"
    told = rf"written writes into a {kind} \({op} \S+\): a module holds"
    with pytest.raises(ValueError, match=told):
        freeze(concrete, "written")


def test_writes_of_a_dataset_are_an_error(state: Written) -> None:
    def mapped(x: Any) -> Any:
        data = tf.data.Dataset.from_tensor_slices(x)
        data = data.map(lambda y: y + in_itself(state.assign_add, x)[0])
        return data.reduce(0.0, lambda a, b: a + b)

    concrete = tf.function(mapped, autograph=False).get_concrete_function(X)
    with pytest.raises(ValueError, match="written writes into a variable"):
        freeze(concrete, "written")


def test_reads_of_what_others_write_are_none(state: Written) -> None:
    def read(x: Any) -> Any:
        rows = tf.gather(state.variable, tf.cast(x, tf.int32)) + state.variable[0]
        return rows + tf.cast(state.mutable.lookup(tf.cast(x, tf.int64)), tf.float32)

    x = tf.constant([1.0, 0.0, 3.0, 2.0])
    np.testing.assert_array_equal(hybrid.compile(read, X)(x), read(x))


def test_what_is_of_the_call_may_be_written() -> None:
    def own(x: Any) -> Any:
        table = tf.raw_ops.AnonymousMutableHashTable(key_dtype=tf.int64, value_dtype=tf.float32)
        keys = tf.range(4, dtype=tf.int64)
        filled = tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=keys, values=x)
        with tf.control_dependencies([filled]):
            return tf.raw_ops.LookupTableFindV2(
                table_handle=table, keys=keys[::-1], default_value=0.0
            )

    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(hybrid.compile(own, X)(x), x[::-1])


class Resource(tf.saved_model.experimental.TrackableResource):
    """A variable that TensorFlow does not know as one, as its documentation makes it."""

    def __init__(self) -> None:
        super().__init__()
        self._initialize()

    def _create_resource(self) -> Any:
        return tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[4])

    def _initialize(self) -> None:
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=[1.0, 2.0, 3.0, 4.0])

    def _destroy_resource(self) -> None:
        tf.raw_ops.DestroyResourceOp(resource=self.resource_handle)

    def read(self) -> Any:
        return tf.raw_ops.ReadVariableOp(resource=self.resource_handle, dtype=tf.float32)


def test_a_resource_that_an_initializer_makes(tmp_path: Path) -> None:
    module = tf.Module()
    module.resource = Resource()
    module.added = tf.function(lambda x: {"y": x + module.resource.read()}, input_signature=[X])
    x = tf.range(4.0)
    wanted = module.added(x)["y"]
    np.testing.assert_array_equal(hybrid.compile(module.added)(x)["y"], wanted)
    signatures = {"serving_default": module.added}
    tf.saved_model.save(module, str(tmp_path / "m"), signatures=signatures)
    np.testing.assert_array_equal(hybrid.compile(tmp_path / "m")(x=x)["y"], wanted)

    def branching(x: Any) -> Any:
        return tf.cond(x[0] > 1.0, module.resource.read, lambda: x)

    with pytest.raises(ValueError, match="branching has If cond read a variable that is no tf"):
        hybrid.compile(branching, X)


def test_state_that_nobody_can_read_is_named() -> None:
    queue = tf.queue.FIFOQueue(4, [tf.float32])

    def dequeued(x: Any) -> Any:
        return x + queue.dequeue()

    with pytest.raises(ValueError, match="dequeued keeps state that QueueDequeueV2 needs"):
        hybrid.compile(dequeued, X)


def test_a_table_that_is_not_filled_is_an_error() -> None:
    bare = tf.raw_ops.AnonymousHashTable(key_dtype=tf.string, value_dtype=tf.int64)

    def looked_up(x: Any) -> Any:
        return tf.raw_ops.LookupTableFindV2(
            table_handle=bare, keys=x, default_value=tf.constant(0, tf.int64)
        )

    told = re.escape("looked_up has a table that cannot be read: ") + ".*is not initialized"
    with pytest.raises(ValueError, match=told):
        hybrid.compile(looked_up, tf.constant(["a"]))


def test_state_that_is_found_by_its_name() -> None:
    def find(x: Any) -> Any:
        table = tf.raw_ops.MutableHashTableV2(
            key_dtype=tf.int64, value_dtype=tf.float32, shared_name="test_captures_table"
        )
        keys = tf.cast(x, tf.int64)
        return table, tf.raw_ops.LookupTableFindV2(
            table_handle=table, keys=keys, default_value=-1.0
        )

    def inserting(x: Any) -> Any:
        table, found = find(x)
        tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=tf.cast(x, tf.int64), values=x)
        return found

    def branching(x: Any) -> Any:
        return tf.cond(x[0] > 1.0, lambda: find(x)[1], lambda: x)

    def queued(x: Any) -> Any:
        queue = tf.raw_ops.FIFOQueueV2(component_types=[tf.float32], shared_name="a queue")
        (one,) = tf.raw_ops.QueueDequeueV2(handle=queue, component_types=[tf.float32])
        return x + one

    x = tf.constant([1.0, 0.0, 3.0, 2.0])
    inserting(x)
    module = hybrid.compile(lambda x: find(x)[1], X)
    np.testing.assert_array_equal(module([1.0, 3.0, 5.0, 0.0]), [1.0, 3.0, -1.0, 0.0])
    for function, why in (
        (inserting, r"inserting writes into a table \(LookupTableInsertV2"),
        (branching, "branching finds state by its name in a loop or a branch, "),
        (queued, "queued keeps state that QueueDequeueV2 needs, "),
    ):
        with pytest.raises(ValueError, match=why):
            hybrid.compile(function, X)
