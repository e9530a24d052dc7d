"""Registration: declarations, versions, redefinition, and programs that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.core.framework.op_def_pb2 import OpDef
from tensorflow.python.framework import op_def_registry

from composite.compiler import op_traits
from composite.compiler.frontend import tf_ops
from composite.compiler.schema import OpSchema
from tests.runtime import kernel_support as k
from tests.runtime.programs import Program, expand, ops_of

Unique = Callable[[str], str]

WITH_TWIN = sorted(row.name for row in op_traits.TABLE.values() if row.stateless_twin)


def unary(op: str, inner: str, **where: Any) -> Program:
    p = Program(op, ["x: float"], [], ["o: float"], **where)
    keyword = "features" if inner.startswith("Relu") else "x"
    p.returns(o=p.call(inner, **{keyword: "x"}))
    return p


def test_declaration_is_parsed_by_tensorflow() -> None:
    declaration = k.node(
        "",
        "Declared",
        inputs=["xs: N * T", "y: Ts"],
        attrs=['act: {"", "RELU"} = ""', "N: int >= 2", "T: {float, half}", "Ts: list(type)"],
        outputs=["o: T"],
    )
    op_def = OpDef.FromString(k.request("composite_parse_declaration", declaration))
    assert [a.name for a in op_def.input_arg] == ["xs", "y"]
    by_name = {a.name: a for a in op_def.attr}
    assert by_name["N"].minimum == 2 and by_name["act"].default_value.s == b""
    assert list(by_name["T"].allowed_values.list.type) == [1, 19]


@pytest.mark.parametrize(
    ("parts", "offender"),
    [
        ({"inputs": ["x: bogus("]}, "'x: bogus(' in inputs of Bad"),
        ({"inputs": ["x: T"]}, "'x: T' in inputs of Bad"),
        ({"attrs": ["T: type", "k: integer"]}, "'k: integer' in attrs of Bad"),
        ({"attrs": ['k: {"a"} = "b"']}, "in attrs of Bad"),
        ({"outputs": ["o: float", "o"]}, "'o' in outputs of Bad"),
    ],
)
def test_declaration_errors_name_the_string(parts: dict[str, list[str]], offender: str) -> None:
    full = {key: parts.get(key, []) for key in ("inputs", "attrs", "outputs")}
    with pytest.raises(tf.errors.InvalidArgumentError) as e:
        k.request("composite_parse_declaration", k.node("", "Bad", **full))
    assert offender in str(e.value)


def test_a_name_of_tensorflow_is_refused() -> None:
    with pytest.raises(tf.errors.AlreadyExistsError, match="TensorFlow has an op Relu already"):
        unary("Relu", "Tanh").register()


def test_the_same_program_again_is_nothing(unique: Unique) -> None:
    op = unique("Again")
    assert unary(op, "Relu").register() == unary(op, "Relu").register()
    # The same body from another place is the same op: a library built from the source, say.
    unary(op, "Relu", place="other.py:7").register()


def test_a_new_version_from_the_same_place(unique: Unique) -> None:
    op = unique("Edited")
    first = unary(op, "Relu").register()
    second = unary(op, "Tanh").register()
    assert first != second
    assert ops_of(expand(op)) == ["Tanh"]
    assert ops_of(expand(op, _composite_program=first)) == ["Relu"]
    assert ops_of(expand(op, _composite_program=second)) == ["Tanh"]
    unary(op, "Relu").register()
    assert ops_of(expand(op)) == ["Relu"]


def test_a_definition_at_another_place_names_both(unique: Unique) -> None:
    op = unique("Elsewhere")
    unary(op, "Relu", place="ops.py:12").register()
    with pytest.raises(tf.errors.AlreadyExistsError) as e:
        unary(op, "Tanh", place="more.py:3").register()
    assert "ops.py:12" in str(e.value) and "more.py:3" in str(e.value)
    assert ops_of(expand(op)) == ["Relu"]


def test_the_origin_counts_where_it_is_known(unique: Unique) -> None:
    op = unique("Moved")
    unary(op, "Relu", place="cell1.py:2", origin="notebook#dense").register()
    unary(op, "Tanh", place="cell9.py:5", origin="notebook#dense").register()
    assert ops_of(expand(op)) == ["Tanh"]
    with pytest.raises(tf.errors.AlreadyExistsError, match="cell9.py:5"):
        unary(op, "Sigmoid", place="cell9.py:5", origin="notebook#other").register()


def test_another_signature_is_refused(unique: Unique) -> None:
    op = unique("Signature")
    unary(op, "Relu").register()
    p = Program(op, ["x: double"], [], ["o: double"])
    p.returns(o="x")
    with pytest.raises(tf.errors.AlreadyExistsError, match="other inputs, attributes, outputs"):
        p.register()


def test_a_redefined_callee_leaves_its_callers(unique: Unique) -> None:
    inner, outer = unique("Callee"), unique("Caller")
    unary(inner, "Relu").register()
    p = Program(outer, ["x: float"], [], ["o: float"])
    p.returns(o=p.call(inner, x="x"))
    p.register()
    unary(inner, "Tanh").register()
    assert ops_of(expand(inner)) == ["Tanh"]
    assert ops_of(expand(outer)) == ["Relu"]


def test_unknown_ops(unique: Unique) -> None:
    with pytest.raises(tf.errors.NotFoundError, match="no composite op Nowhere"):
        expand("Nowhere")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"ops\.py:2:5: .* calls Reluu"):
        unary(unique("Typo"), "Reluu").register()


@pytest.mark.parametrize("inner", WITH_TWIN)
def test_stateful_random_ops_name_their_twin(unique: Unique, inner: str) -> None:
    """The one that the compiler names, which has the same table."""
    twin = op_traits.of(inner).stateless_twin
    advice = tf_ops.random_advice(OpSchema.from_op_def(op_def_registry.get(inner)))
    assert advice is not None and advice.startswith(f"tf.raw_ops.{twin} ")
    p = Program(unique("Random"), ["s: int32"], [], ["o: float"], stateful=True)
    p.returns(o=p.call(inner, shape="s", dtype=tf.float32))
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"ops.py:.*{inner}.*use {twin} with"):
        p.register()


def test_state_must_be_declared(unique: Unique) -> None:
    p = Program(unique("Quiet"), ["v: resource"], [], ["o: float"])
    p.returns(o=p.call("ReadVariableOp", resource="v", dtype=tf.float32))
    with pytest.raises(tf.errors.InvalidArgumentError, match="ReadVariableOp is stateful, but"):
        p.register()


def broken(change: Callable[[FunctionDefLibrary], None], op: str) -> FunctionDefLibrary:
    """A program with two regions, made wrong by `change`."""
    p = Program(op, ["x: float"], ["k: int"], ["o: float"])
    then, orelse = p.region("then_0", ["x"], 1), p.region("else_0", ["x"], 1)
    then.returns(**{"0": "x"})
    orelse.returns(**{"0": orelse.unary("neg", "x")})
    (result,) = p.branch("k", ["x"], "then_0", "else_0", 1)
    p.returns(o=result)
    library = p.finish()
    change(library)
    return library


def no_digest(program: FunctionDefLibrary) -> None:
    del program.function[0].attr["_digest"]


def unknown_kind(program: FunctionDefLibrary) -> None:
    program.function[0].node_def[0].op = "tfr.loop"


def unknown_value(program: FunctionDefLibrary) -> None:
    program.function[0].node_def[0].input[0] = "nobody"


def unknown_region(program: FunctionDefLibrary) -> None:
    program.function[0].node_def[0].attr["then"].s = b"gone"


def self_region(program: FunctionDefLibrary) -> None:
    inner = program.function[1].node_def.add(name="9", op="tfr.apply", input=["x"])
    inner.attr["region"].s = b"then_0"
    inner.attr["size"].i = 1


def wrong_trips(program: FunctionDefLibrary) -> None:
    node = program.function[0].node_def[0]
    node.op = "tfr.while"
    node.attr["condition"].s, node.attr["body"].s = b"then_0", b"else_0"


def no_return(program: FunctionDefLibrary) -> None:
    program.function[0].ret.clear()


def twice_named(program: FunctionDefLibrary) -> None:
    program.function[0].node_def.add().CopyFrom(program.function[0].node_def[0])


def huge_size(program: FunctionDefLibrary) -> None:
    program.function[0].node_def[0].attr["size"].i = 2**40


def wrong_arity(program: FunctionDefLibrary) -> None:
    program.function[2].node_def[0].input.append("x")


def wrong_captures(program: FunctionDefLibrary) -> None:
    program.function[0].node_def[0].input.append("x")


def no_operator(program: FunctionDefLibrary) -> None:
    program.function[2].node_def[0].attr["operator"].s = b"sqrt"


def bad_name(program: FunctionDefLibrary) -> None:
    program.function[0].signature.name = "lower case"


def bad_type(program: FunctionDefLibrary) -> None:
    program.function[0].signature.input_arg[0].type_attr = "T"


def no_function(program: FunctionDefLibrary) -> None:
    program.Clear()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (no_digest, "carries no digest"),
        (unknown_kind, "kind 'tfr.loop', which this version of the runtime does not know"),
        (unknown_value, "no value is named 'nobody'"),
        (unknown_region, "region 'gone', which is not in the program"),
        (self_region, "'then_0': it contains itself"),
        (wrong_trips, "takes 1 values and gives 1, but the node at .* has 2 and expects 1"),
        (no_return, "nothing is returned for 'o'"),
        (twice_named, "defined twice"),
        (huge_size, "no valid size"),
        (wrong_arity, r"tfr\.unary\) has 2 inputs"),
        (wrong_captures, "takes 1 values and gives 1, but the node at ops.py:"),
        (no_operator, "no operator 'sqrt'"),
        (bad_name, "no name for an op"),
        (bad_type, "T"),
        (no_function, "no function"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_malformed_programs(
    unique: Unique, change: Callable[[FunctionDefLibrary], None], text: str
) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        k.request("composite_register", broken(change, unique("Broken")))


def test_bytes_that_are_no_program() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="cut short or damaged"):
        k.request("composite_register", b"\xff\xff\xff")


def flip_every_byte() -> None:
    """Every byte of a program flipped in turn: refused, or a program all the same.

    In a process of its own: what is no damage to the runtime registers an op of a strange name.
    """
    whole = broken(lambda program: None, "Flipped").SerializeToString(deterministic=True)
    damaged = [whole[:end] for end in range(len(whole))]
    for i in range(len(whole)):
        data = bytearray(whole)
        data[i] ^= 1 << (i % 8)
        damaged.append(bytes(data))
    refused = 0
    for data in damaged:
        try:
            k.request("composite_register", bytes(data))
        except tf.errors.OpError:
            refused += 1
    print("refused", refused, "of", len(damaged))


def test_damaged_programs_do_not_crash(run_python: Callable[..., Any]) -> None:
    done = run_python("from tests.runtime.program import test_registry as t\nt.flip_every_byte()")
    words = done.stdout.split()
    assert words[0] == "refused" and int(words[1]) > int(words[3]) // 2


def test_version() -> None:
    answer = k.reply("composite_version")
    assert answer == {"tensorflow": tf.__version__, "abi": 2}
