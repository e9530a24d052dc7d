"""What a program means: expansions of programs built by hand, and the errors of wrong ones."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from tests.runtime import kernel_support as k
from tests.runtime.programs import Program, expand, give, ops_of, run_expansion

Unique = Callable[[str], str]
ACT = 'act: {"", "RELU", "RELU6", "TANH"} = ""'


def dense(op: str) -> Program:
    """The dense layer with an activation chosen by an if/elif/else chain over an attribute."""
    p = Program(op, ["x: T", "w: T", "b: T"], [ACT, "T: {float, double}"], ["o: T"])
    y = p.binary("add", p.call("MatMul", a="x", b="w", transpose_b=True), "b")
    inner = p.region("else_1", ["y", "act"], 1)
    relu6, same = p.region("then_2", ["y"], 1), p.region("else_2", ["y"], 1)
    give(relu6, relu6.call("Relu6", features="y"))
    give(same, "y")
    (chosen,) = inner.branch(
        inner.compare("eq", "act", inner.const("RELU6")), ["y"], "then_2", "else_2", 1
    )
    give(inner, chosen)
    relu = p.region("then_1", ["y", "act"], 1)
    give(relu, relu.call("Relu", features="y"))
    (result,) = p.branch(p.compare("eq", "act", p.const("RELU")), [y, "act"], "then_1", "else_1", 1)
    p.returns(o=result)
    return p


@pytest.mark.parametrize(
    ("act", "ops"),
    [("", []), ("RELU", ["Relu"]), ("RELU6", ["Relu6"])],
)
def test_branches_on_attributes(unique: Unique, act: str, ops: list[str]) -> None:
    op = unique("Dense")
    dense(op).register()
    library = expand(op, act=act, T=tf.float32)
    assert ops_of(library) == ["MatMul", "AddV2", *ops]
    function = library.function[0]
    assert [a.name for a in function.signature.input_arg] == ["x", "w", "b"]
    assert [n.name for n in function.node_def][:2] == ["MatMul", "AddV2"]
    assert function.signature.name.startswith(f"__composite_{op}_")
    x, w, b = np.random.default_rng(0).standard_normal((3, 4, 4)).astype(np.float32)
    want = {"": lambda v: v, "RELU": tf.nn.relu, "RELU6": tf.nn.relu6}[act](x @ w.T + b)
    np.testing.assert_allclose(run_expansion(library, x, w, b)[0], want, rtol=1e-6)


def test_names_depend_on_what_is_read(unique: Unique) -> None:
    op = unique("Reads")
    p = Program(op, ["x: T"], ["T: type"], ["o: T"])
    p.returns(o=p.binary("mul", "x", p.dim("x", 1)))
    p.register()
    names = {
        shape: expand(op, [shape], T=tf.float32).function[0].signature.name
        for shape in [(2, 3), (9, 3), (None, 3), (2, 4)]
    }
    assert names[2, 3] == names[9, 3] == names[None, 3] != names[2, 4]
    double = expand(op, [(2, 3)], T=tf.float64).function[0].signature.name
    assert double != names[2, 3]


def test_unknown_dim_is_a_weak_number(unique: Unique) -> None:
    op = unique("Mean")
    p = Program(op, ["x: T"], ["T: type"], ["o: T"])
    total = p.call("Sum", input="x", reduction_indices=p.list(0))
    p.returns(o=p.binary("truediv", total, p.dim("x", 0)))
    p.register()
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    known, unknown = expand(op, [(3, 2)], T=tf.float32), expand(op, [(None, 2)], T=tf.float32)
    assert "Shape" not in ops_of(known) and "Shape" in ops_of(unknown)
    for library in (known, unknown):
        np.testing.assert_array_equal(run_expansion(library, x)[0], x.mean(0))


@pytest.mark.parametrize("size", [5, 8])
@pytest.mark.parametrize(
    ("operator", "number", "want"),
    [
        ("floordiv", -3, lambda n: n // -3),
        ("mod", -3, lambda n: n % -3),
        ("truediv", 4, lambda n: n / 4),
        ("pow", 2, lambda n: n**2),
        ("sub", 0.5, lambda n: n - 0.5),
        ("mul", True, lambda n: n * True),
        ("and", 6, lambda n: n & 6),
        ("or", True, lambda n: n | True),
        ("xor", -1, lambda n: n ^ -1),
    ],
)
def test_weak_arithmetic_is_pythons(
    unique: Unique, operator: str, number: Any, want: Callable[[int], Any], size: int
) -> None:
    op = unique("Weak")
    p = Program(op, ["x: double"], [], ["o: double"])
    p.returns(o=p.binary("add", "x", p.binary(operator, p.dim("x", 0), number)))
    p.register()
    x = np.zeros(size)
    for shape in [(size,), (None,)]:
        np.testing.assert_array_equal(run_expansion(expand(op, [shape]), x)[0], x + want(size))


@pytest.mark.parametrize(
    ("operator", "number", "want"),
    [
        ("lshift", 2, lambda n: n << 2),
        ("pow", -2, lambda n: n**-2),
        ("not", None, lambda n: not n),
    ],
)
def test_what_only_known_numbers_have_waits_for_them(
    unique: Unique, operator: str, number: Any, want: Callable[[int], Any]
) -> None:
    op = unique("Wait")
    p = Program(op, ["x: double"], [], ["o: double"])
    dim = p.dim("x", 0)
    result = p.unary(operator, dim) if number is None else p.binary(operator, dim, number)
    p.returns(o=p.call("Fill", dims=p.list(dim), value=p.call("Cast", x=result, DstT=tf.float64)))
    p.register()
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"not yet: dim 0 of input 'x'"):
        expand(op, [(None,)])
    (found,) = run_expansion(expand(op, [(4,)]), np.zeros(4))
    np.testing.assert_array_equal(found, np.full(4, want(4), np.float64))


def test_value_of_an_input(unique: Unique) -> None:
    op = unique("Parts")
    p = Program(op, ["x: float", "n: int32"], [], ["o: float"])
    p.returns(o=p.call("AddN", inputs=p.call("Split", split_dim=0, value="x", num_split="n")))
    p.register()
    with pytest.raises(tf.errors.FailedPreconditionError, match="value of input 'n'"):
        expand(op, [(4, 2), ()])
    request = k.node("", op)
    for value in [None, 2]:
        proto = request.attr["_constants"].list.tensor.add()
        if value is not None:
            proto.CopyFrom(tf.make_tensor_proto(value, tf.int32))
    library = FunctionDefLibrary.FromString(k.request("composite_expand", request))
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.testing.assert_array_equal(run_expansion(library, x, 2)[0], x[:2] + x[2:])


def test_lists(unique: Unique) -> None:
    op = unique("Lists")
    p = Program(op, ["xs: N * T"], ["N: int >= 1", "T: type"], ["sum: T", "back: N * T"])
    first, *_ = p.unpack("xs", 3)
    total = p.binary("add", first, p.item("xs", -1))
    p.returns(sum=p.binary("mul", total, p.emit("tfr.length", ["xs"])), back="xs")
    p.register()
    library = expand(op, N=3, T=tf.int32)
    signature = library.function[0].signature
    assert [a.name for a in signature.input_arg] == ["xs_0", "xs_1", "xs_2"]
    assert [a.name for a in signature.output_arg] == ["sum", "back_0", "back_1", "back_2"]
    assert run_expansion(library, 1, 2, 4) == [15, 1, 2, 4]


def test_early_return_shares_its_rest(unique: Unique) -> None:
    op = unique("Early")
    p = Program(op, ["x: float"], ["k: int"], ["o: float"])
    rest = p.region("rest_1", ["v"], 1)
    give(rest, rest.unary("neg", "v"))
    then, orelse = p.region("then_0", ["x"], 1), p.region("else_0", ["x"], 1)
    for region, factor in [(then, 2.0), (orelse, 3.0)]:
        (result,) = region.apply("rest_1", [region.binary("mul", "x", factor)], 1)
        give(region, result)
    (result,) = p.branch(p.compare("gt", "k", 0), ["x"], "then_0", "else_0", 1)
    p.returns(o=result)
    p.register()
    assert run_expansion(expand(op, k=1), 5.0) == [-10]
    assert run_expansion(expand(op, k=-1), 5.0) == [-15]


def test_composites_are_expanded_in_place(unique: Unique) -> None:
    inner, outer = unique("Inner"), unique("Outer")
    digest = dense(inner).register()
    p = Program(outer, ["x: float", "w: float"], [], ["o: float"])
    y = p.call(inner, digest, x="x", w="w", b=0.0, act=p.const("RELU"))
    p.returns(o=p.call("Tanh", x=y))
    p.register()
    library = expand(outer)
    assert [n.name for n in library.function[0].node_def] == [
        "Const",
        f"{inner}/MatMul",
        f"{inner}/AddV2",
        f"{inner}/Relu",
        "Tanh",
    ]
    x = np.ones((2, 2), np.float32)
    np.testing.assert_allclose(run_expansion(library, x, x)[0], np.tanh(2 * x), rtol=1e-6)


def test_composites_that_stay_whole_are_nodes(unique: Unique) -> None:
    inner, middle, outer = unique("Inner"), unique("Middle"), unique("Outer")
    digest = dense(inner).register()
    p = Program(middle, ["x: float", "w: float"], [], ["o: float"])
    p.returns(o=p.call(inner, digest, x="x", w="w", b=0.0, act=p.const("RELU")))
    between = p.register()
    p = Program(outer, ["x: float", "w: float"], [], ["o: float"])
    p.returns(o=p.call("Tanh", x=p.call(middle, between, x="x", w="w")))
    p.register()
    for whole, ops in (
        ([digest], ["Const", inner, "Tanh"]),
        ([between], [middle, "Tanh"]),
        ([], ["Const", "MatMul", "AddV2", "Relu", "Tanh"]),
    ):
        library = expand(outer, _composite_whole=whole)
        assert ops_of(library) == ops
        stamped = [n for n in library.function[0].node_def if "_composite_program" in n.attr]
        assert [n.attr["_composite_program"].s.decode() for n in stamped] == whole
        x = np.ones((2, 2), np.float32)
        np.testing.assert_allclose(run_expansion(library, x, x)[0], np.tanh(2 * x), rtol=1e-6)


def test_state_is_kept_in_order(unique: Unique) -> None:
    op = unique("Counts")
    p = Program(op, ["v: resource", "x: float"], [], ["o: float"], stateful=True)
    p.call("AssignAddVariableOp", resource="v", value="x")
    p.returns(o=p.call("ReadVariableOp", resource="v", dtype=tf.float32))
    p.register()
    function = expand(op).function[0]
    add, read = function.node_def
    assert list(read.input) == ["v", "^AssignAddVariableOp"]
    assert dict(function.control_ret) == {n.name: n.name for n in (add, read)}
    assert function.signature.is_stateful


def test_nodes_carry_the_authors_place(unique: Unique) -> None:
    op = unique("Placed")
    p = Program(op, ["x: float"], [], ["o: float"])
    p.returns(o=p.call("Relu", features="x", node_name="rectified"))
    p.register()
    (relu,) = expand(op).function[0].node_def
    assert relu.name == "rectified"
    assert list(relu.experimental_debug_info.original_node_names) == ["rectified (ops.py:2:5)"]


def test_numbers_adopt_the_dtype_beside_them(unique: Unique) -> None:
    op = unique("Adopts")
    p = Program(op, ["x: T"], ["T: type"], ["o: T"])
    p.returns(o=p.binary("add", p.binary("mul", 2, "x"), p.const(np.array([1.0, 2.0]))))
    p.register()
    for dtype in [tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64]:
        library = expand(op, T=dtype)
        x = np.asarray([1, 2], dtype.as_numpy_dtype)
        np.testing.assert_array_equal(run_expansion(library, x)[0], 2 * x + x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot become an int32 tensor"):
        expand(op, T=tf.int32)


class NumPy:
    """What `Program` offers of operators, run at once."""

    def binary(self, name: str, a: Any, b: Any) -> Any:
        return getattr(operator, name)(a, b)

    def unary(self, name: str, a: Any) -> Any:
        return getattr(operator, name)(a)


@pytest.mark.parametrize(
    ("fold", "array"),
    [
        (lambda p, a: p.binary("mul", a, 0.1), np.array([[1.5, -2.5]])),
        (lambda p, a: p.binary("truediv", 1, a), np.array([1.5, -2.5], np.float32)),
        (lambda p, a: p.binary("add", a, a), np.array([1.5, -2.5])),
        (lambda p, a: p.binary("truediv", a, 2), np.array([3, -5])),
        (lambda p, a: p.binary("floordiv", a, 2), np.array([3, -5])),
        (lambda p, a: p.unary("neg", a), np.array([0.0, 2.0])),
    ],
)
def test_arrays_stay_arrays(unique: Unique, fold: Callable[[Any, Any], Any], array: Any) -> None:
    """Array <operator> number is NumPy's, and adopts the dtype of the tensor beside it."""
    op = unique("Arrays")
    p = Program(op, ["x: T"], ["T: {half, float, double}"], ["o: T"])
    p.returns(o=p.binary("add", "x", fold(p, p.const(array))))
    p.register()

    want: Any = fold(NumPy(), array)
    for dtype in [tf.float16, tf.float32, tf.float64]:
        library = expand(op, T=dtype)
        x = np.zeros(array.shape, dtype.as_numpy_dtype)
        assert ops_of(library) == ["Const", "AddV2"]
        got = run_expansion(library, x)[0]
        np.testing.assert_array_equal(got, want.astype(dtype.as_numpy_dtype))


def test_what_is_called_twice_is_one_constant(unique: Unique) -> None:
    op = unique("Shares")
    p = Program(op, ["x: float"], [], ["o: float"])
    p.returns(o=p.binary("add", p.binary("mul", "x", 3.0), 3.0))
    p.register()
    assert ops_of(expand(op)).count("Const") == 1


def test_shape_as_tensor(unique: Unique) -> None:
    op = unique("Like")
    p = Program(op, ["x: float", "y: float"], [], ["o: float"])
    p.returns(o=p.call("Reshape", tensor="x", shape=p.shape("y")))
    p.register()
    x, y = np.arange(6, dtype=np.float32), np.zeros((2, 3), np.float32)
    cases: list[Any] = [[(6,), (2, 3)], [(6,), (2, None)], [None, None]]
    for shapes in cases:
        np.testing.assert_array_equal(run_expansion(expand(op, shapes), x, y)[0], x.reshape(2, 3))
    assert ops_of(expand(op, [(6,), (2, 3)])) == ["Const", "Reshape"]


def test_matmul_operator_goes_by_rank(unique: Unique) -> None:
    op = unique("At")
    p = Program(op, ["x: float", "y: float"], [], ["o: float"])
    p.returns(o=p.binary("matmul", p.unary("neg", "x"), "y"))
    p.register()
    assert ops_of(expand(op, [(2, 3), (3, 4)])) == ["Neg", "MatMul"]
    assert ops_of(expand(op, [(5, 2, 3), (3, 4)])) == ["Neg", "BatchMatMulV2"]
    assert ops_of(expand(op, [None, None])) == ["Neg", "BatchMatMulV2"]
    # The rank of an inner tensor depends on ranks alone: sizes stay out of the name.
    names = [expand(op, [(n, 3), (3, 4)]).function[0].signature.name for n in (2, 7)]
    assert names[0] == names[1]


def test_attributes_of_every_kind(unique: Unique) -> None:
    op = unique("Kinds")
    p = Program(
        op,
        ["x: float"],
        ["f: float = 0.5", "b: bool = true", "t: type", "s: shape", "ints: list(int) = [1, 2]"],
        ["o: t", "n: int64"],
    )
    y = p.call("Cast", x=p.binary("mul", "x", "f"), DstT="t")
    y = p.call("Reshape", tensor=y, shape="s")
    total = p.binary("add", p.item("ints", 0), p.emit("tfr.length", ["ints"]))
    p.returns(o=y, n=p.binary("mul", total, "b"))
    p.register()
    shape = tf.TensorShape([2, 1]).as_proto()
    call = k.node("", op, t=tf.float64, f=0.25)
    call.attr["s"].shape.CopyFrom(shape)
    library = FunctionDefLibrary.FromString(k.request("composite_expand", call))
    got, n = run_expansion(library, [4.0, 8.0])
    assert n == 3
    np.testing.assert_array_equal(got, np.array([[1.0], [2.0]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="attribute 's' is missing"):
        expand(op, t=tf.float64)
