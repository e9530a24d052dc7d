"""The random programs as TensorFlow's functions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tests.orders.programs import (
    HANDLES,
    NESTED,
    VARIABLES,
    WIDTH,
    Program,
    Step,
    mixed,
    variable_of,
)

SHAPE = [WIDTH]
START = tf.TensorSpec(SHAPE)
HANDLE = tf.TensorSpec([], tf.resource)


class Builder:
    """Adds the steps of a body to the graph of TensorFlow's that is being made."""

    def __init__(
        self, handles: list[Any], start: Any, *, orders_itself: bool, waits: bool = True
    ) -> None:
        self._handles = handles
        # A body that TensorFlow inlines does not wait for what it is given, unless it says so.
        self._first = [start] if waits else []
        self._orders_itself = orders_itself  # TensorFlow, what has one handle
        self.values = [start]
        self._before: list[set[int]] = [set()]  # the accesses that each value comes after
        self._accesses: list[tuple[Any, set[int], set[int], set[int], bool]] = []
        self.nodes: list[Any] = []

    def add(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            self._add(step)

    def result(self) -> Any:
        """The last value, behind all that the body does."""
        with tf.control_dependencies(self.nodes):
            value = tf.identity(self.values[-1])
        value.set_shape(SHAPE)
        return value

    def _add(self, step: Step) -> None:
        left, right = step.left % len(self.values), step.right % len(self.values)
        before = set[int]().union(*(self._before[place] for place in _operands(step, left, right)))
        if step.kind == "mix":
            value = mixed(step.function, self.values[left], self.values[right], tf.maximum, tf.abs)
            self._value(value, before)
            return
        handles = step.handles()
        if not handles:  # a body that computes only
            self._value(self._nested(step, left, right), before)
            return
        writes = self._written(step)
        waits = [place % len(self.values) for place in step.waits]
        before = before.union(*(self._before[place] for place in waits))
        nodes = self._first + [self.values[place] for place in waits]
        nodes += self._needed(step, handles, writes, before)
        number = len(self._accesses)
        with tf.control_dependencies(nodes):
            made = self._access(step, left, right)
        node = made.op if isinstance(made, tf.Tensor) else made
        self.nodes.append(node)
        self._accesses.append((node, handles, writes, before, step.calls()))
        if isinstance(made, tf.Tensor):
            self._value(made, before | {number})

    def _needed(
        self, step: Step, handles: set[int], writes: set[int], before: set[int]
    ) -> Iterator[Any]:
        """What the step has to wait for: the accesses that it conflicts with."""
        for number in reversed(range(len(self._accesses))):
            node, others, written, earlier, calls = self._accesses[number]
            if number in before or not _conflict(handles, writes, others, written):
                continue
            # TensorFlow takes a handle that a call is given twice for one that is read alone.
            is_seen = self._orders_itself and not (calls or step.calls())
            if is_seen and not _conflict_of_two(handles, writes, others, written):
                # The order is seen by TensorFlow, and holds for what that access waits for too.
                before |= earlier | {number}
                continue
            before |= earlier | {number}
            later = [place for place, own in enumerate(self._before) if number in own]
            if later and not step.directly:
                yield self.values[later[step.function % len(later)]]
            else:
                yield node

    def _access(self, step: Step, left: int, right: int) -> Any:
        handle = self._handles[step.handle % len(self._handles)]
        if step.kind == "read":
            value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
            value.set_shape(SHAPE)  # a handle that is an argument does not know it
            return value
        if step.kind in ("branch", "loop", "call"):
            return self._nested(step, left, right)
        operand = mixed(step.function, self.values[left], self.values[right], tf.maximum, tf.abs)
        write = {
            "assign": tf.raw_ops.AssignVariableOp,
            "add": tf.raw_ops.AssignAddVariableOp,
            "sub": tf.raw_ops.AssignSubVariableOp,
        }[step.kind]
        return write(resource=handle, value=operand)

    def _nested(self, step: Step, left: int, right: int) -> Any:
        left_value, right_value = self.values[left], self.values[right]
        if step.kind == "call":
            return self._call(step, right_value)

        def body(steps: tuple[Step, ...], start: Any) -> Any:
            inner = Builder(self._handles, start, orders_itself=self._orders_itself)
            inner.add(steps)
            return inner.result()

        if step.kind == "branch":
            return tf.cond(
                tf.reduce_sum(left_value) > 0.0,
                lambda: body(step.body, right_value),
                lambda: body(step.other, right_value),
            )
        return tf.while_loop(
            lambda i, _: i < 2,
            lambda i, carried: (i + 1, body(step.body, carried)),
            (tf.constant(0), right_value),
        )[1]

    def _call(self, step: Step, start: Any) -> Any:
        handles = [self._handles[handle % len(self._handles)] for handle in range(HANDLES)]

        @tf.function(autograph=False, input_signature=[START, *[HANDLE] * HANDLES])
        def called(start: Any, *handles: Any) -> Any:
            inner = Builder(list(handles), start, orders_itself=True)
            inner.add(step.body)
            return inner.result()

        return called(start, *handles)

    def _value(self, value: Any, before: set[int]) -> None:
        self.values.append(value)
        self._before.append(before)

    @staticmethod
    def _written(step: Step) -> set[int]:
        own = {step.handle} if step.kind in ("assign", "add", "sub") else set()
        return own.union(*(Builder._written(inner) for inner in step.body + step.other))


def _operands(step: Step, left: int, right: int) -> tuple[int, ...]:
    """The values that whatever waits for a step waits for, too.

    A control edge from a call, a branch or a loop that TensorFlow inlined waits for what its body
    accesses, and not for what it is given.
    """
    return () if step.kind in ("read", *NESTED) else (left, right)


def _conflict(handles: set[int], writes: set[int], others: set[int], written: set[int]) -> bool:
    """Whether two accesses are to one variable, and one of them writes."""
    return any(
        variable_of(a) == variable_of(b) and (a in writes or b in written)
        for a, b in itertools.product(handles, others)
    )


def _conflict_of_two(
    handles: set[int], writes: set[int], others: set[int], written: set[int]
) -> bool:
    """Whether two accesses are to one variable by two handles, and one of them writes."""
    return any(
        a != b and variable_of(a) == variable_of(b) and (a in writes or b in written)
        for a, b in itertools.product(handles, others)
    )


def function_of(program: Program, variables: list[tf.Variable], name: str) -> Callable[[Any], Any]:
    """A new function of TensorFlow's that runs a program with its variables."""
    given = [variable.handle for variable in variables]
    given.append(given[0])

    def body(start: Any, *handles: Any) -> Any:
        own = list(handles) or given[:VARIABLES]
        if program.handles == "named":
            own = [
                tf.raw_ops.VarHandleOp(
                    dtype=tf.float32, shape=SHAPE, shared_name=f"{name}_{variable_of(handle)}"
                )
                for handle in range(HANDLES)
            ]
        builder = Builder(own, start, orders_itself=program.order == "automatic", waits=False)
        builder.add(program.steps)
        with tf.control_dependencies(builder.nodes):
            return [tf.identity(value) for value in builder.values]

    handles = given if program.handles == "arguments" else []
    signature = [START, *[HANDLE] * len(handles)]
    if program.order == "automatic":
        function = tf.function(body, autograph=False, input_signature=signature)
    else:
        function = tf.compat.v1.wrap_function(body, signature)
    return lambda start: function(start, *handles)
