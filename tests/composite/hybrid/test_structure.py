"""What a module says of itself, and the arguments that it takes."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

from composite.hybrid.structure import Description, indices

SPEC = tf.TensorSpec([None, 2], tf.float32)


def described(inputs: Any, count: int, outputs: Any = 0) -> Description:
    specs = (("float32", (None, 2)),) * count
    return Description("f", indices(inputs, tf.TensorSpec), outputs, specs, "", 0, 1, "main")


def test_a_description_is_read_as_it_was_written() -> None:
    made = described((({"a": SPEC, "b": [SPEC, None]},), {"flag": (SPEC, 3)}), 3, {"y": (0, [1])})
    assert made.inputs == (({"a": 0, "b": [1, None]},), {"flag": (2, None)})
    assert Description.of_json(made.to_json()) == made
    with pytest.raises(ValueError, match="another version: compile the model again"):
        Description.of_json(made.to_json().replace(b'"format": 4', b'"format": 9'))


def test_last_arguments_that_are_no_tensors_may_be_left_out() -> None:
    made = described(((SPEC, "how", 3), {}), 1)
    x = [[1.0, 2.0]]
    for args in ((x,), (x, "how"), (x, "how", 3)):
        assert [one.numpy().tolist() for one in made.arguments(args, {})] == [x]
    with pytest.raises(TypeError, match="f takes"):
        described(((SPEC, 3, SPEC), {}), 2).arguments((x, 3), {})


def test_arguments_are_bound_by_their_structure() -> None:
    made = described(((SPEC,), {"b": SPEC}), 2)
    one, two = made.arguments([[[1.0, 2.0]]], {"b": tf.zeros([3, 2])})
    assert (one.shape, two.shape) == ((1, 2), (3, 2))
    with pytest.raises(TypeError, match=r"f takes float32\(None, 2\), b=float32\(None, 2\)"):
        made.arguments([tf.ones([1, 2])], {})
    with pytest.raises(ValueError, match=r"input 1 of f has shape \(3,\)"):
        made.arguments([tf.ones([1, 2])], {"b": tf.zeros([3])})


def test_the_only_input_of_a_signature_needs_no_name() -> None:
    one, two = described(((), {"b": SPEC}), 1), described(((), {"a": SPEC, "b": SPEC}), 2)
    x = tf.ones([1, 2])
    assert one.arguments([x], {})[0] is one.arguments([], {"b": x})[0]
    for made, args, named in (one, [x], {"b": x}), (one, [x, x], {}), (two, [x], {}):
        with pytest.raises(TypeError, match="f takes"):
            made.arguments(args, named)


def test_what_is_no_tensor_may_be_left_out() -> None:
    made = described(((SPEC, None), {"b": SPEC, "training": None}), 2)
    x, y = tf.ones([1, 2]), tf.zeros([3, 2])
    spared: list[tuple[Any, Any]] = [((), {}), ((True,), {}), ((), {"training": False})]
    for args, more in spared:
        assert [t.shape[0] for t in made.arguments([x, *args], {"b": y} | more)] == [1, 3]
    wrong: list[tuple[Any, Any]] = [((), {"b": y}), ((x,), {}), ((x, 1, 2), {"b": y})]
    for args, named in [*wrong, ((x,), {"b": y, "c": 1})]:
        with pytest.raises(TypeError, match="f takes"):
            made.arguments(args, named)


def test_results_have_the_structure_of_the_model() -> None:
    assert described((), 0, {"y": (0, [1, None])}).result(["p", "q"]) == {"y": ("p", ["q", None])}
