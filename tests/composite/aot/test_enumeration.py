"""Which kinds of calls a library has kernels for when none is stated."""

from composite.aot import enumeration
from composite.aot.enumeration import kinds
from examples.blocks import ops as blocks
from examples.gallery.swiglu import swiglu
from examples.signatures import ops as signatures
from tests.composite import dense_ops

ACTIVATIONS = ("", "RELU", "RELU6", "TANH")


def test_every_dtype_and_activation_with_the_dims_that_must_be_equal():
    found = kinds(dense_ops.dense, 16)
    assert not found.note
    expected = [
        {
            "input_": (dtype, ("d0", "d1")),
            "filter_": (dtype, ("d2", "d1")),
            "bias": (dtype, ("d2",)),
            "act": act,
        }
        for dtype in ("float32", "float64", "float16", "bfloat16")
        for act in ACTIVATIONS
    ]
    assert found.calls == expected


def test_the_bound_is_told():
    found = kinds(blocks.fused_softmax, 5)
    assert found.note == "more than 5 kinds of calls; the others have no kernel"
    shapes = [call["logits"] for call in found.calls]
    assert shapes[:4] == [(d, ("d0", "d1")) for d in ("float32", "float64", "float16", "bfloat16")]
    assert shapes[4] == ("float32", ("d0",))


def test_there_is_an_end_to_trying(monkeypatch):
    monkeypatch.setattr(enumeration, "_MOST_TRIALS", 20)
    found = kinds(dense_ops.dense, 16)
    assert found.note == "20 shapes were tried: state the calls of others"


def test_which_of_many_dims_must_be_equal_takes_few_calls(monkeypatch):
    monkeypatch.setattr(enumeration, "_MOST_TRIALS", 400)
    found = kinds(swiglu, 4)
    assert "tried" not in found.note
    shapes = {name: value[1] for name, value in found.calls[0].items() if name != "x"}
    assert len({*shapes.values()}) > 1


def test_dims_that_depend_on_what_others_are_have_all_ways_tried(monkeypatch):
    found = kinds(dense_ops.dense, 16)
    monkeypatch.setattr(enumeration, "_told_apart", lambda count, accepts: [*range(count)])
    assert kinds(dense_ops.dense, 16) == found


def test_lists_and_fixed_dtypes():
    first = kinds(signatures.sum_of_list, 4).calls[0]
    assert len(first["xs"]) == 2
    assert kinds(dense_ops.scale, 4).calls[0]["times"][0] == "int32"


def test_what_has_to_be_stated():
    found = kinds(signatures.rotated_axis, 4)
    assert found.calls == []
    assert found.note == "attribute 'axis' has neither a default nor a list: state its calls"


def test_a_rank_that_ends_the_process_in_a_kernel_is_not_run(run_python):
    done = run_python(
        "from composite import Composite\n"
        "import tensorflow as tf\n"
        "from composite.aot.enumeration import kinds\n"
        '@Composite("EnumeratedConv", inputs=["x: float", "f: float"], outputs=["y: float"])\n'
        "def conv(x, f):\n"
        "    return tf.nn.conv2d(x, f, strides=1, padding='SAME')\n"
        "print(kinds(conv, 4))\n"
    )
    assert "no shapes were found" in done.stdout


def test_attributes_that_are_given_are_those_of_all_calls():
    found = kinds(dense_ops.dense, 16, {"act": "RELU"})
    assert {call["act"] for call in found.calls} == {"RELU"}
    dtypes = {call["bias"][0] for call in found.calls}
    assert dtypes == {"float32", "float64", "float16", "bfloat16"}
