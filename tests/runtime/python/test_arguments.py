"""Structures of tensors as the arguments of a function that is called directly."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, strategies

from composite.ops import call, direct

Point = collections.namedtuple("Point", "x y")


class Function:
    """A function whose direct call tells which of those that were added it is."""

    def __init__(self) -> None:
        self.calls = direct.FunctionCalls.new(self._converted)
        self._made: dict[int, Any] = {}

    @staticmethod
    def _converted(value: Any) -> Any:
        return tf.constant(value) if type(value) is np.ndarray else value

    def add(self, answer: Any, *args: Any) -> None:
        """Has arguments like these give the answer."""
        flat = tf.nest.flatten(args)
        specs = [tf.TensorSpec.from_tensor(tf.convert_to_tensor(x)) for x in flat]
        concrete = tf.function(lambda *xs: [tf.zeros([])]).get_concrete_function(*specs)
        config = call.eager_state()[0].function_call_options.config_proto_serialized
        made = direct.of_function(concrete.name, config, concrete.captured_inputs)
        self._made[id(made)] = concrete  # the eager runtime forgets it with that
        self.calls.add(args, made, lambda _: answer)

    def __call__(self, *args: Any) -> Any:
        return self.calls.call(*call.eager_state(), args)


x, y = tf.constant([1.0, 2.0]), tf.constant([3.0])


@pytest.fixture
def function() -> Function:
    return Function()


def test_structures_are_told_apart(function: Function) -> None:
    structures: list[tuple[Any, ...]] = [
        (x, y),
        ([x, y],),
        ((x, y),),
        ([x], y),
        ([x], [y]),
        ([[x], y],),
        ({"a": x, "b": y},),
        ({"a": x, "c": y},),
        ({"ab": x, "": y},),
        ({"a": {"b": x, "c": y}},),
        ({"a": {"b": x}, "c": y},),
        (x, y, []),
        (x, y, ()),
        (x, y, {}),
    ]
    for i, structure in enumerate(structures):
        assert function(*structure) is NotImplemented
        function.add(i, *structure)
    assert [function(*one) for one in structures] == [*range(len(structures))]
    assert function({"b": y, "a": x}) == 6  # in any order


def test_dtypes_and_shapes_are_told_apart(function: Function) -> None:
    tensors = [
        tf.zeros([]),
        tf.zeros([1]),
        tf.zeros([1, 1]),
        tf.zeros([2, 3]),
        tf.zeros([3, 2]),
        tf.zeros([0, 3]),
        tf.zeros([2, 3], tf.int32),
        tf.zeros([2, 3], tf.float64),
        tf.constant(["text"]),
    ]
    for i, tensor in enumerate(tensors):
        assert function(tensor) is NotImplemented
        function.add(i, tensor)
    assert [function(one) for one in tensors] == [*range(len(tensors))]
    assert function(np.ones([2, 3], np.float32)) == 3


Trees = strategies.recursive(
    strategies.sampled_from([x, y]),
    lambda inner: strategies.one_of(
        strategies.lists(inner, max_size=3),
        strategies.lists(inner, max_size=3).map(tuple),
        strategies.dictionaries(strategies.text(max_size=2), inner, max_size=3),
    ),
    max_leaves=5,
)


def spelled(tree: Any) -> str:
    """A structure and the tensors in it, as a text."""
    if isinstance(tree, dict):
        return f"{{{', '.join(f'{name!r}: {spelled(tree[name])}' for name in sorted(tree))}}}"
    if isinstance(tree, (list, tuple)):
        items = ", ".join(map(spelled, tree))
        return f"[{items}]" if isinstance(tree, list) else f"({items},)"
    return "x" if tree is x else "y"


@given(Trees, Trees)
def test_two_structures(one: Any, other: Any) -> None:
    function = Function()
    function.add("one", one, x)
    same = spelled(one) == spelled(other)
    assert (function(other, x) == "one") == same


@pytest.mark.parametrize(
    "given",
    [
        (1.0,),
        ([x, None],),
        ({1: x},),
        (Point(x, y),),
        (collections.OrderedDict(a=x),),
        (tf.Variable([1.0]),),
    ],
    ids=["number", "None", "number as a key", "named tuple", "ordered dict", "variable"],
)
def test_what_is_left_to_tensorflow(function: Function, given: tuple[Any, ...]) -> None:
    assert function(*given) is NotImplemented


def test_a_list_that_contains_itself(function: Function) -> None:
    endless: list[Any] = [x]
    endless.append(endless)
    with pytest.raises(RecursionError, match="in arguments of a function"):
        function(endless)


def test_what_conversion_raises() -> None:
    def refuse(value: Any) -> Any:
        raise LookupError(str(value))

    calls = direct.FunctionCalls.new(refuse)
    assert calls.call(*call.eager_state(), (x,)) is NotImplemented
    with pytest.raises(LookupError, match="five"):
        calls.call(*call.eager_state(), (x, ["five"]))


def test_results_are_packed() -> None:
    concrete = tf.function(lambda a: (a + 1.0, a * 2.0)).get_concrete_function(x)
    config = call.eager_state()[0].function_call_options.config_proto_serialized
    made = direct.of_function(concrete.name, config, concrete.captured_inputs)
    calls = direct.FunctionCalls.new(lambda value: value)
    calls.add((x,), made, tuple)
    total, product = calls.call(*call.eager_state(), (x,))
    np.testing.assert_array_equal(total, [2.0, 3.0])
    np.testing.assert_array_equal(product, [2.0, 4.0])

    def refuse(_: Any) -> Any:
        raise LookupError("no such structure")

    calls.add((x,), made, refuse)
    with pytest.raises(LookupError, match="no such structure"):
        calls.call(*call.eager_state(), (x,))


def test_bad_calls(function: Function) -> None:
    state = call.eager_state()
    with pytest.raises(TypeError, match="call.context, here, arguments"):
        function.calls.call(*state)
    with pytest.raises(SystemError):
        function.calls.call(*state, [x])
    with pytest.raises(TypeError, match="add.arguments, made, pack"):
        function.calls.add()
    function.add(0, x)
    concrete = tf.function(lambda a: a).get_concrete_function(tf.TensorSpec([2], tf.int32))
    config = state[0].function_call_options.config_proto_serialized
    made = direct.of_function(concrete.name, config, [])
    with pytest.raises(ValueError, match="the function takes other arguments"):
        function.calls.add((x,), made, None)
