from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from composite.compiler.tfr import Builder, Call, Fork, Loop, Place, Recipe, dialect

CALL, INSIDE = Place("ops.py", 3, 5), Place("ops.py", 3, 5, within="tf.twice")
ELSEWHERE = Place("ops.py", 9, 1)

RELU = Call("Relu", ("features",), False, "tensor")
PRINT = Call("PrintV2", ("input",), True, "tensor")

Build = Callable[[Builder, object], object]


@pytest.fixture
def builder() -> Iterator[Builder]:
    with dialect.lock, dialect.context():
        made = Builder()
        yield made
        made.clear()


def tensor(builder: Builder) -> object:
    return builder.call(Call("Const", (), False, "tensor"), [])


def recorded(builder: Builder, value: object, build: Build) -> Recipe | None:
    with builder.at(CALL):
        with builder.recording() as recording, builder.at(INSIDE):
            result = build(builder, value)
        return Recipe.of(builder, recording, INSIDE, [value], [result])


def built_again(builder: Builder, recipe: Recipe) -> Recipe | None:
    """Build for another value, and record that: the same recipe, if all is the same."""
    again = recorded(builder, tensor(builder), lambda b, x: recipe.build(b, INSIDE, [x])[0])
    builder.module.operation.verify()
    return again


def test_the_same_ops_are_built_on_another_value(builder: Builder) -> None:
    first, second = tensor(builder), tensor(builder)
    recipe = recorded(builder, first, lambda b, x: b.binary("add", b.call(RELU, [x]), x))
    assert recipe is not None
    there = Place("ops.py", 9, 1, within="tf.twice")
    with builder.at(ELSEWHERE):
        (result,) = recipe.build(builder, there, [second])
    relu, add = list(builder.module.body.operations)[-2:]
    assert list(relu.operands) == [second]
    assert list(add.operands) == [relu.results[0], second]
    assert result == add.results[0]
    assert relu.location == builder.locate(there)
    assert relu.attributes["op"].value == "Relu"


def test_a_branch_is_built_again_with_its_blocks(builder: Builder) -> None:
    def build(b: Builder, x: object) -> object:
        fork = Fork(b, b.compare("gt", b.rank(b.shape(x)), b.constant(1)))
        with b.into(fork.then):
            inner = b.call(RELU, [x])
        with b.into(fork.otherwise):
            other = b.unary("neg", x)
        return fork.join([(inner, other)], ["y"])[0]

    recipe = recorded(builder, tensor(builder), build)
    assert recipe is not None
    assert [step.name for step in recipe.steps][-1] == "scf.if"
    assert built_again(builder, recipe) == recipe


def test_a_loop_is_built_again_with_its_arguments(builder: Builder) -> None:
    def build(b: Builder, x: object) -> object:
        loop = Loop(b, [b.constant(0), x], ["attr", "tensor"])
        with b.into(loop.condition):
            more = b.compare("lt", loop.condition.arguments[0], b.constant(3))
        loop.decide(more)
        index, carried = loop.body.arguments
        with b.into(loop.body):
            values = [b.binary("add", index, b.constant(1)), b.call(RELU, [carried])]
        return loop.join(values)[1]

    recipe = recorded(builder, tensor(builder), build)
    assert recipe is not None
    assert [step.name for step in recipe.steps][-1] == "scf.while"
    assert built_again(builder, recipe) == recipe


def test_what_nothing_uses_is_left_out_and_what_has_an_effect_is_not(builder: Builder) -> None:
    def build(b: Builder, x: object) -> object:
        b.compare("is", b.constant(None), b.constant(None))
        b.call(PRINT, [x])
        return b.call(RELU, [x])

    recipe = recorded(builder, tensor(builder), build)
    assert recipe is not None
    assert [step.attributes["op"].value for step in recipe.steps] == ["PrintV2", "Relu"]


def test_elements_are_noted_again(builder: Builder) -> None:
    first, second = tensor(builder), tensor(builder)
    recipe = recorded(builder, first, lambda b, x: b.make_list([x, x]))
    assert recipe is not None
    with builder.at(CALL):
        (made,) = recipe.build(builder, INSIDE, [second])
    assert builder.element_type(made) == "tensor"


def test_a_value_that_is_given_may_be_the_result(builder: Builder) -> None:
    first, second = tensor(builder), tensor(builder)
    recipe = recorded(builder, first, lambda _, x: x)
    assert recipe is not None
    assert recipe.build(builder, INSIDE, [second]) == [second]


def test_ops_that_use_a_value_of_their_surroundings_are_no_recipe(builder: Builder) -> None:
    first, second = tensor(builder), tensor(builder)
    assert recorded(builder, first, lambda b, x: b.binary("add", x, second)) is None


def test_ops_of_several_places_are_no_recipe(builder: Builder) -> None:
    def build(b: Builder, x: object) -> object:
        with b.at(ELSEWHERE):
            return b.call(RELU, [x])

    assert recorded(builder, tensor(builder), build) is None


def test_a_function_of_the_module_is_no_part_of_a_recipe(builder: Builder) -> None:
    def build(b: Builder, x: object) -> object:
        b.function("rest_0", ["tensor"], ["tensor"])
        return b.call_function("rest_0", [x], ["tensor"])[0]

    assert recorded(builder, tensor(builder), build) is None
