"""@Composite: what it makes, and what it refuses, with the place."""

import copy
import inspect
import linecache
import pickle
import pydoc
import textwrap
import time

import numpy as np
import pytest
import tensorflow as tf

import composite
from composite import Composite, CompositeOp
from composite.compiler.source import CompositeSyntaxError
from tests.composite.dense_ops import dense, scale, two_layers
from tests.conftest import no_compiling
from tests.yardstick import slowness

X = np.arange(6, dtype=np.float32).reshape(2, 3)
W = np.ones((4, 3), np.float32)
B = np.zeros(4, np.float32)

_cells = iter(range(10**6))


def run_cell(text, **names):
    """Runs source as a notebook does: each run of a cell has a file name of its own."""
    name = f"<cell {next(_cells)}>"
    text = textwrap.dedent(text)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope = {"__name__": "__main__", "tf": tf, "Composite": Composite, **names}
    exec(compile(text, name, "exec"), scope)
    return scope


def test_the_op_object_is_a_function_to_look_at():
    assert isinstance(dense, CompositeOp)
    assert dense.__name__ == "dense"
    assert (dense.__doc__ or "").startswith("Dense layer with its activation")
    assert list(inspect.signature(dense).parameters) == ["input_", "filter_", "bias", "act", "name"]
    assert inspect.signature(dense).parameters["act"].default == ""
    assert "dense(input_, filter_, bias, *, act='', name=None)" in repr(dense)
    page = pydoc.plain(pydoc.render_doc(dense))
    assert "act(input_ @ filter_ᵀ + bias)" in page
    assert "(input_, filter_, bias, *, act='', name=None)" in page


def test_copies_and_pickles_are_the_op_itself():
    assert copy.deepcopy(dense) is dense
    assert pickle.loads(pickle.dumps(dense)) is dense


def test_what_the_op_object_knows():
    assert dense.op_def.name == "TestDense"
    assert [arg.name for arg in dense.op_def.input_arg] == ["input_", "filter_", "bias"]
    assert dense.schema.op_name == "TestDense"
    assert len(dense.digest) == 32
    assert dense.place.startswith("tests/composite/dense_ops.py:")
    assert "tfr." in dense.mlir
    assert two_layers.callees() == [dense]
    np.testing.assert_array_equal(dense.python_function(X, W, B, ""), X @ W.T)


def test_expand_takes_tensors_arrays_and_specs():
    for x in (X, tf.constant(X), tf.TensorSpec([2, 3]), tf.TensorSpec([None, 3])):
        library = dense.expand(x, W, bias=B, act="RELU")
        ops = [node.op for node in library.function[0].node_def]
        assert ops == ["MatMul", "BiasAdd", "Relu"]
    assert [n.op for n in dense.expand(X, W, B).function[0].node_def] == ["MatMul", "BiasAdd"]
    with pytest.raises(TypeError, match="missing a required argument: 'bias'"):
        dense.expand(X, W)


def test_composites_call_composites():
    w = np.eye(3, dtype=np.float32)
    hidden, y = two_layers(X, w, B[:3])
    np.testing.assert_allclose(hidden, np.maximum(X, 0))
    np.testing.assert_allclose(y, np.tanh(X), rtol=1e-5)
    ops = [n.op for n in two_layers.expand(X, w, B[:3]).function[0].node_def]
    assert ops == ["MatMul", "BiasAdd", "Relu", "MatMul", "BiasAdd", "Tanh"]


def test_other_inputs_and_attributes():
    np.testing.assert_allclose(scale(X, 3), X * 1.5)
    np.testing.assert_allclose(scale(X, 3, factor=2.0), X * 6)


def test_wrong_calls_are_errors():
    with pytest.raises(tf.errors.InvalidArgumentError, match="GELU"):
        dense(tf.constant(X), tf.constant(W), tf.constant(B), act="GELU")
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="GELU"):
        dense(X, W, B, act="GELU")
    with pytest.raises(ValueError, match="GELU"):
        tf.function(lambda x: dense(x, W, B, act="GELU"))(X)
    with pytest.raises(TypeError, match="positional"):
        dense(X, W, B, "RELU")
    with pytest.raises((TypeError, tf.errors.InvalidArgumentError), match="int32"):
        dense(tf.constant([[1]]), tf.constant([[1]]), tf.constant([1]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        dense(X, W[:, :2], B)
    with pytest.raises(tf.errors.InvalidArgumentError, match="ndims|rank"):
        dense(X[None], W, B)
    with pytest.raises(ValueError, match="rank"):
        tf.function(lambda x: dense(x, W, B))(X[None])
    with pytest.raises(ValueError, match="must be equal"):
        tf.function(lambda x: dense(x, W[:, :2], B))(X)


@pytest.mark.parametrize(
    ("declaration", "parameters", "message"),
    [
        ('inputs=["x: Q"], outputs=["y: Q"]', "x", "Q"),
        ('inputs=["x: nonsense"], outputs=["y: float"]', "x", "nonsense"),
        ('inputs=["x: T", "x: T"], derived_attrs=["T: type"], outputs=["y: T"]', "x", "x"),
        ("inputs=[\"x: T\"], derived_attrs=[\"T: type\"], attrs=[\"a: {'u'} = 'v'\"], "
         'outputs=["y: T"]', "x, a", "v"),
        ('inputs=["x: float"], outputs=["y: float"]', "z", "z"),
        ('inputs=["x: float", "z: float"], outputs=["y: float"]', "z, x", "order"),
        ('inputs=["x: float"], outputs=["y: float"]', "x, more", "more"),
        ('inputs=["x: float"], attrs=["a: int"], outputs=["y: float"]', "x", "a"),
        ('inputs=["x: float"], derived_attrs=["T: type"], outputs=["y: float"]', "x", "T"),
        ('inputs=["x: float"], attrs=["name: string"], outputs=["y: float"]', "x, name", "name"),
        ('inputs=["x: float"], outputs=["y: float"]', "*x", "plain parameters"),
    ],
)  # fmt: skip
def test_mistakes_are_errors_with_a_place(declaration, parameters, message):
    cell = f"""
        @Composite("TestMistake", {declaration})
        def mistake({parameters}):
            return x
    """
    with pytest.raises(CompositeSyntaxError) as caught:
        run_cell(cell)
    assert message in caught.value.msg
    assert str(caught.value.filename).startswith("<cell")
    assert caught.value.lineno in (2, 3)
    assert caught.value.offset is not None


def test_an_unsupported_body_is_an_error_with_a_place():
    cell = """
        @Composite("TestBad", inputs=["x: float"], outputs=["y: float"])
        def bad(x):
            yield x
    """
    with pytest.raises(CompositeSyntaxError) as caught:
        run_cell(cell)
    assert caught.value.lineno == 4


def test_lists_of_strings_are_asked_for():
    with pytest.raises(TypeError, match="inputs must be"):
        Composite("TestStrings", inputs="x: float")
    with pytest.raises(TypeError, match="op_name"):
        Composite(["TestStrings"])  # type: ignore[arg-type]


_COMPOSITION = """
    @Composite("{op}"{replace})
    def composition({parameters}):
        return {result}
"""


def composition(op, parameters, result, replace=""):
    text = _COMPOSITION.format(op=op, parameters=parameters, result=result, replace=replace)
    return run_cell(text)["composition"]


def test_a_composition_has_the_declaration_of_the_op():
    op = composition("Lgamma", "x", "x * 2")
    assert (op.op_name, op.composes) == ("CompositeLgamma", "Lgamma")
    assert [attr.name for attr in op.op_def.attr] == ["T"]
    assert list(inspect.signature(op).parameters) == ["x", "name"]
    np.testing.assert_array_equal(op([1.0, 2.0]), [2.0, 4.0])
    assert dense.composes == ""


def test_a_composition_that_is_run_again_decides_about_replacing_anew():
    x = tf.constant([0.25, 0.5])
    replaced = ", replace=True"
    steps = [(replaced, "x * 3", 3 * x), ("", "x * 3", None), (replaced, "x", x), ("", "x", None)]
    stock = lambda: tf.raw_ops.Digamma(x=x)  # noqa: E731
    before = stock()
    for replace, result, expected in steps:
        composition("Digamma", "x", result, replace)
        wanted = before if expected is None else expected
        np.testing.assert_array_equal(stock(), wanted)
        np.testing.assert_array_equal(tf.function(stock)(), wanted)


@pytest.mark.parametrize(
    ("op", "parameters", "message"),
    [
        ("TestNoSuchOp", "x", "TensorFlow has no op TestNoSuchOp: declare the inputs and outputs"),
        ("AddN", "xs", "the parameter `xs` is not declared: `inputs` is expected here; AddN has "),
        ("Cumsum", "x, axis, reverse", r"Cumsum has \(x, axis, exclusive, reverse\)"),
        ("Cumsum", "x, axis, exclusive", "no parameter for it; Cumsum has "),
        ("Cumsum", "x, axis, exclusive=True, reverse=False", "the default of `exclusive` is True"),
        ("RandomUniform", "shape, seed, seed2, dtype", "RandomUniform cannot .* it keeps state"),
        ("Switch", "data, pred", "the op Switch cannot have a composition: TensorFlow finds it"),
        ("RefIdentity", "input", "RefIdentity cannot have a composition: it takes or gives a Ref"),
        ("TestDense", "x", "TestDense cannot have a composition: it is a composite itself"),
    ],
)
def test_a_composition_that_does_not_fit_is_refused(op, parameters, message):
    with pytest.raises(CompositeSyntaxError, match=f"(?i){message}") as caught:
        composition(op, parameters, "x")
    assert caught.value.lineno in {2, 3}


def test_a_second_composition_is_an_error_that_names_the_first():
    composition("BesselI0e", "x", "x")
    with pytest.raises(CompositeSyntaxError, match=r"BesselI0e has a composition at <cell \d+>:3"):
        run_cell(
            """
            @Composite("BesselI0e")
            def elsewhere(x):
                return x
            """
        )


def test_a_composition_keeps_no_state():
    with pytest.raises(tf.errors.InvalidArgumentError, match="BesselI1e keeps none"):
        run_cell(
            """
            @Composite("BesselI1e")
            def stateful(x):
                tf.raw_ops.Assert(condition=True, data=[x])
                return x
            """
        )


def test_replace_is_for_compositions():
    with pytest.raises(TypeError, match="replace=True is for a composition"):
        Composite("TestReplace", inputs=["x: float"], outputs=["y: float"], replace=True)


_VERSION = """
    @Composite("{name}", inputs=["x: float"], outputs=["y: float"])
    def versioned(x):
        return x * {factor}
"""


def test_a_cell_that_is_run_again_is_a_new_version():
    one = run_cell(_VERSION.format(name="TestCell", factor=2.0))["versioned"]
    traced = tf.function(lambda x: one(x) + 0.0).get_concrete_function(tf.TensorSpec([]))
    two = run_cell(_VERSION.format(name="TestCell", factor=3.0))["versioned"]
    assert one.digest != two.digest
    # The name means the new body, a node made before the old one, and so does the old object.
    assert two(1.0).numpy() == 3
    assert traced(tf.constant(1.0)).numpy() == 2
    assert one(1.0).numpy() == 2
    assert tf.function(one)(tf.constant(1.0)).numpy() == 2
    assert tf.function(two)(tf.constant(1.0)).numpy() == 3
    x = tf.constant(1.0)
    for op, slope in ((one, 2), (two, 3)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = op(x)
        assert tape.gradient(y, x).numpy() == slope
    same = run_cell(_VERSION.format(name="TestCell", factor=3.0))["versioned"]
    assert same.digest == two.digest
    assert two(1.0).numpy() == 3


def test_an_old_object_follows_the_options():
    one = run_cell(_VERSION.format(name="TestCellOptions", factor=2.0))["versioned"]
    run_cell(_VERSION.format(name="TestCellOptions", factor=3.0))
    assert one(1.0).numpy() == 2
    with (
        composite.options(backend="tvm"),
        no_compiling(),
        pytest.raises(tf.errors.FailedPreconditionError, match="nobody compiles"),
    ):
        one(1.0)
    assert one(1.0).numpy() == 2


def test_another_signature_under_the_name_is_an_error():
    run_cell(_VERSION.format(name="TestSignature", factor=2.0))
    changed = _VERSION.replace('"x: float"', '"x: double"').replace('"y: float"', '"y: double"')
    with pytest.raises((tf.errors.OpError, CompositeSyntaxError), match="TestSignature"):
        run_cell(changed.format(name="TestSignature", factor=2.0))


def test_another_place_is_an_error_that_names_both():
    run_cell(_VERSION.format(name="TestPlace", factor=2.0))
    other = _VERSION.replace("def versioned", "def elsewhere").format(name="TestPlace", factor=3.0)
    with pytest.raises(CompositeSyntaxError, match=r"TestPlace is defined at <cell \d+>:3 already"):
        run_cell(other)


def test_ops_of_tensorflow_are_not_replaced():
    with pytest.raises((tf.errors.OpError, CompositeSyntaxError), match="MatMul"):
        run_cell(_VERSION.format(name="MatMul", factor=2.0))


@Composite("TestStrings", inputs=["s: string"], outputs=["o: string"])
def strings(s):
    return tf.identity(s)


@pytest.mark.parametrize("value", ["a", ["a", "b"]])
def test_a_call_with_strings_is_expanded(value):
    (node,) = strings.expand(tf.constant(value)).function[0].node_def
    assert node.op == "Identity"


@pytest.mark.timed
def test_decorating_is_quick():
    run_cell(_VERSION.format(name="TestQuick0", factor=2.0))
    times = []
    for i in range(1, 6):
        start = time.perf_counter()
        run_cell(_VERSION.format(name=f"TestQuick{i}", factor=2.0))
        times.append(time.perf_counter() - start)
    assert min(times) < 0.05 * slowness()


def _cast_to_float(x):
    return tf.cast(x, tf.float32)


@pytest.mark.parametrize("dtype", ["float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz"])
@pytest.mark.parametrize("place", ["x", "y"])
def test_a_dtype_that_no_op_takes_cannot_be_declared(dtype, place):
    with pytest.raises(tf.errors.UnimplementedError):
        tf.cast(tf.ones([2]), dtype)
    dtypes = {"x": "float", "y": "float"} | {place: dtype}
    declare = Composite("TestNoDtype", inputs=[f"x: {dtypes['x']}"], outputs=[f"y: {dtypes['y']}"])
    with pytest.raises(SyntaxError, match=f"`{place}: {dtype}`: TensorFlow has no op"):
        declare(_cast_to_float)


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e4m3fn"])
def test_a_float8_that_can_be_cast(dtype):
    name = f"Test{dtype.title().replace('_', '')}"
    op = Composite(name, inputs=[f"x: {dtype}"], outputs=["y: float"])(_cast_to_float)
    x = tf.cast(tf.constant([0.3, -1.7, 2.0]), dtype)
    np.testing.assert_array_equal(op(x), op.python_function(x))
