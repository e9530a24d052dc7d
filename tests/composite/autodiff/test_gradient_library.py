"""Gradients in a process that has a built library, and the source of none of its ops."""

import pytest

import composite

SOURCE = """
import tensorflow as tf
from composite import Composite

FLOATS = ["T: {float, double}"]

@Composite("TravelsCube", inputs=["x: T", "w: T"], derived_attrs=FLOATS, outputs=["y: T"])
def cube(x, w):
    return tf.tanh(x * w) * x * x

@Composite("TravelsBranch", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T"])
def branch(x):
    if tf.reduce_sum(x) > 0.0:
        return cube(x, x)
    return tf.exp(x)

@Composite("TravelsLoop", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T"])
def loop(x):
    y = x
    while tf.reduce_sum(y * y) < 100.0:
        y = y * x + y
    return y

@Composite("TravelsNone", inputs=["x: float"], outputs=["y: float"])
def none(x):
    return tf.raw_ops.IgammaGradA(a=x, x=x)

@Composite("TravelsOwn", inputs=["x: float"], outputs=["y: float"])
def own(x):
    return x * x

@own.gradient
def gradient(op, upstream):
    return upstream * 100.0

@Composite("TravelsCaller", inputs=["x: float"], outputs=["y: float"])
def caller(x):
    return own(x) * 2.0
"""

START = """
import ctypes, sys
import numpy as np
import tensorflow as tf

def cube(x, w): return tf.tanh(x * w) * x * x
def branch(x): return cube(x, x) if tf.reduce_sum(x) > 0.0 else tf.exp(x)
def loop(x):
    y = x
    while tf.reduce_sum(y * y) < 100.0:
        y = y * x + y
    return y

x = tf.constant([[0.5, 1.25], [-0.25, 2.0]], tf.float64)

def forward(f):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = f(x)
    return accumulator.jvp(y)

def orders(f):
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        first = tape.gradient(y, x)
    return [first, outer.gradient(first, x), forward(f)]

def error(f, *inputs):
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = f(*inputs)
    try:
        return tape.gradient(y, inputs)
    except LookupError as raised:
        return str(raised)
"""

LOADED = """
import composite
ops = composite.load(sys.argv[1])
for op, python in ((lambda x: ops.cube(x, x), lambda x: cube(x, x)), (ops.branch, branch),
                   (lambda x: ops.branch(-x), lambda x: branch(-x)), (ops.loop, loop)):
    expected = orders(python)
    for found in (orders(op), tf.function(lambda: orders(op), autograph=False)()):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)
one = tf.constant(1.0)
print(error(ops.none, one))
print(error(ops.own, one))
print(error(ops.caller, one))
ops.own.gradient(lambda op, upstream: upstream * 5.0)
assert [float(g) for g in error(ops.caller, one)] == [10.0]
assert not [name for name in sys.modules if name.split(".")[0] in ("tvm", "torch_mlir")]
"""

BARE = """
ctypes.CDLL(sys.argv[2])
module = tf.load_op_library(sys.argv[1] + "/libtravels.so")
print(error(lambda x: module.travels_cube(x=x, w=x), x))
import composite
composite.load(sys.argv[1])
for a, b in zip(orders(lambda x: module.travels_cube(x=x, w=x)), orders(lambda x: cube(x, x))):
    np.testing.assert_allclose(a, b, rtol=1e-9)
"""


def line(text):
    """The number of the first line of the source that has the text."""
    return next(i for i, one in enumerate(SOURCE.splitlines(), 1) if text in one)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("travels")
    source = folder / "travels_ops.py"
    source.write_text(SOURCE)
    built = composite.build(source, folder / "lib", name="travels")
    source.unlink()
    return str(built)


def test_orders_are_right_and_errors_name_the_lines(library, run_python):
    lines = run_python(START + LOADED, library).stdout.splitlines()
    where = f"travels_ops.py:{line('IgammaGradA')}:12"
    assert lines[0].startswith(
        f"TravelsNone has no gradient, since IgammaGradA at {where} has none"
    )
    where = f"travels_ops.py:{line('def own')}"
    told = f"TravelsOwn was given a gradient of its own in Python ({where})"
    assert lines[1].startswith(told)
    assert lines[2].startswith("TravelsCaller has no gradient, since ") and told in lines[2]


def test_tensorflow_alone_knows_no_gradient_until_the_library_is_loaded(library, run_python):
    done = run_python(START + BARE, library, str(composite.binding.native.library_path()))
    assert "gradient registry has no entry for: TravelsCube" in done.stdout
