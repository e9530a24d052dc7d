"""Commands that look into an op or run a call of it: show, explain, check, bench."""

import json
import re

import pytest
from click.testing import CliRunner

from composite.cli.main import main
from examples.gallery import rms_norm
from examples.signatures import ops as signatures
from tests.composite import dense_ops

DENSE = f"{dense_ops.__file__}:dense"
SIGNATURES = signatures.__file__
SHAPES = ["-s", "input_=batch,64", "-s", "filter_=32,64", "-s", "bias=32", "-a", "act=RELU"]


def run(*args):
    return CliRunner().invoke(main, [str(arg) for arg in args])


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        ("source", "product = tf.raw_ops.MatMul(a=input_"),
        ("mlir", "func.func @TestDense"),
        ("program", 'name: "TestDense"'),
        ("graph", "Relu = Relu(BiasAdd:output:0)  {T=float32}"),
        ("te", "= MatMul(in0, in1)"),
        ("tir", "def kernel("),
        ("llvm", "define"),
        ("asm", ".text"),
        ("cuda", "// strategies: tensor_product"),
    ],
)
def test_show(stage, text):
    done = run("show", DENSE, "--stage", stage, *SHAPES)
    assert done.exit_code == 0, done.output
    assert text in done.stdout


def test_the_plan_names_stages_stores_and_symbols():
    assert run("show", DENSE, "--stage", "te", *SHAPES).stdout.splitlines() == [
        "in0: float32[s0,64]",
        "in1: float32[32,64]",
        "in2: float32[32]",
        "",
        "stage 0: loops over [s0,32], around t2; stores t5",
        "  t2: float32[s0,32] = MatMul(in0, in1)",
        "  t4: float32[s0,32] = BiasAdd(t2, in2)",
        "  t5: float32[s0,32] = Relu(t4)  # stored",
        "",
        "returns t5",
    ]


def test_the_source_of_a_kernel_for_a_gpu_begins_with_its_launches():
    done = run("show", f"{rms_norm.__file__}:rms_norm", "--stage", "cuda", "-s", "x=batch,64",
               "-s", "gamma=64", "--target", "sm_90")  # fmt: skip
    assert done.exit_code == 0, done.output
    first, launch, *_ = done.stdout.splitlines()
    assert first == "// strategies: rows"
    assert launch.startswith("// kernel_0(in0, in1, out0, size0): [s0] / ")
    assert "__global__" in done.stdout


def test_what_is_not_covered_is_said():
    done = run("show", f"{dense_ops.__file__}:dense", "--stage", "tir", *SHAPES[:-2],
               "-d", "half", "--target", "x86-64-v2")  # fmt: skip
    assert done.exit_code == 0
    done = run("show", f"{SIGNATURES}:filled", "--stage", "tir", "-a", "shape=2,3", "-a",
               "dtype=string")  # fmt: skip
    assert done.exit_code == 1
    assert "there is no kernel for filled" in done.output


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([dense_ops.__file__], "say which op: "),
        ([DENSE], "state the shapes of dense's inputs: --shape input_=... --shape filter_=..."),
        ([DENSE, "-s", "x=1"], "there is no 'x'; input_, filter_, bias"),
        ([DENSE, "-s", "input_"], "write it as NAME=VALUE"),
        ([DENSE, "-s", "input_=2,-1"], "'-1' is no number and no name"),
        ([DENSE, *SHAPES, "-s", "bias=3"], "bias is one tensor, and 2 shapes are given"),
        ([DENSE, *SHAPES, "-d", "float23"], "there is no dtype 'float23'"),
        ([f"{SIGNATURES}:rotated_axis", "-s", "x=2", "-a", "axis=["], "--attr axis=["),
    ],
)
def test_a_call_that_is_stated_wrong_is_2(args, message):
    done = run("explain", *args)
    assert done.exit_code == 2
    assert message in done.output


def test_an_op_that_is_not_there_is_1():
    done = run("explain", f"{dense_ops.__file__}:conv", *SHAPES)
    assert done.exit_code == 1
    assert "there is no op 'conv'; there are dense, two_layers, scale" in done.output


def test_explain_makes_the_call_and_says_what_was_measured():
    done = run("explain", DENSE, *SHAPES, "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["op"] == "TestDense"
    assert said["path"] in ("kernel", "expansion")
    assert said["kernel_us"] > 0
    assert "[32,64]" in said["reason"] or "measured" in said["reason"] or "us" in said["reason"]
    assert 0 < said["error"] < 1e-4
    told = re.search(r"^error +(\S+)$", run("explain", DENSE, *SHAPES, "--no-run").stdout, re.M)
    assert told is not None
    assert float(told[1]) == pytest.approx(said["error"], rel=0.01)


def test_a_list_of_inputs_and_a_value():
    done = run("explain", f"{SIGNATURES}:sum_of_list", "-s", "xs=2,3", "-s", "xs=2,3", "--no-run")
    assert done.exit_code == 0, done.output
    done = run("explain", f"{SIGNATURES}:sum_of_list", "--value", "xs=[[1,2],[3,4]]", "--no-run")
    assert done.exit_code == 0, done.output
    done = run("explain", f"{dense_ops.__file__}:scale", "-s", "x=3", "--value", "times=2")
    assert done.exit_code == 0, done.output


def test_check():
    done = run("check", f"{dense_ops.__file__}:scale", "--way", "eager", "--samples", 3)
    assert done.exit_code == 0, done.output
    assert "TestScale: every way agrees" in done.stdout
    done = run("check", DENSE, *SHAPES, "--way", "eager", "--samples", 1, "--json")
    (report,) = json.loads(done.stdout)
    assert (report["ok"], report["ways"][0]["samples"]) == (True, 1)


def test_a_difference_is_3(tmp_path, monkeypatch):
    monkeypatch.setattr(dense_ops.scale, "python_function", lambda x, times, factor: x)
    done = run("check", f"{dense_ops.__file__}:scale", "--way", "eager", "--report-dir", tmp_path,
               "-s", "x=3", "--value", "times=5")  # fmt: skip
    assert done.exit_code == 3
    assert "differs from its Python function, way 'eager'" in done.output


@pytest.mark.slow
def test_bench():
    done = run("bench", DENSE, *SHAPES, "--seconds", 0.1, "--json")
    assert done.exit_code == 0, done.output
    times = json.loads(done.stdout)["microseconds"]
    assert set(times) == {"composite", "in a tf.function", "TF eager", "tf.function", "XLA"}
    assert all(0 < one["least"] <= one["median"] and one["rounds"] >= 15 for one in times.values())
    assert "of TF's best" in run("bench", DENSE, *SHAPES, "--seconds", 0.1).stdout
