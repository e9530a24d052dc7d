"""The one decision about a call, as its three readers carry it out.

The node runs it, the graph pass reads whether it is final, `explain` says it. Each test asks at
least two of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from tests.runtime import kernel_support as k
from tests.runtime.kernels.dense_node import (
    OPS,
    Dense,
    Done,
    Unique,
    counting,
    refuse,
    tell_compiler,
)

CONSTANTS = {"_composite_constants": [1]}
NOT_YET_ASKED = "no call with these shapes was made yet; the first asks for a kernel"


@pytest.fixture(autouse=True)
def compiler() -> Iterator[None]:
    """A kernel compiler that knows some ops, and floats only."""
    tell_compiler(OPS, dtypes=[tf.float32, tf.float64])
    yield
    tell_compiler([])


@pytest.fixture(scope="module")
def library(tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("kernels")
    return k.build(folder, "k_any", k.DENSE_C)


# What each of them knew and another did not.


def test_a_dtype_that_is_not_compiled(unique: Unique) -> None:
    """Nobody asks for a kernel that the compiler would refuse, and explain promises none."""
    op = unique("RtDecideU8")
    digest = k.register(k.twice(op))
    inputs = {"x": tf.ones([2, 3], tf.uint8)}
    with k.Worker(refuse) as worker:
        explanation = k.explain(op, inputs, T=tf.uint8)
        k.call(op, inputs, T=tf.uint8)
        worker.wait()
        node = tf.function(
            lambda x: k.call(op, {"x": x}, _composite_program=digest), autograph=False
        )
        assert counting(lambda: node(inputs["x"])).replaced
        assert worker.requests == []
        assert k.explain(op, {"x": tf.ones([2])}, T=tf.float32)["reason"] == NOT_YET_ASKED
    assert explanation["path"] == "expansion"
    assert explanation["final"]
    assert explanation["reason"] == (
        "no kernel covers this call, and none can be compiled: not a dtype of kernels: uint8"
    )


def test_a_dtype_that_no_kernel_takes(unique: Unique) -> None:
    op = unique("RtDecideC64")
    k.register(k.twice(op))
    inputs = {"x": tf.ones([2, 3], tf.complex64)}
    tell_compiler(OPS)  # of whatever dtypes
    with k.Worker(refuse) as worker:
        explanation = k.explain(op, inputs, T=tf.complex64)
        k.call(op, inputs, T=tf.complex64)
        worker.wait()
    assert worker.requests == []
    assert (explanation["path"], explanation["final"]) == ("expansion", True)
    assert explanation["reason"] == "no kernel takes its dtypes"
    with k.options("tvm"), pytest.raises(tf.errors.FailedPreconditionError, match="its dtypes"):
        k.call(op, inputs, T=tf.complex64)


def test_constants_select_another_group(unique: Unique, library: Path) -> None:
    dense = Dense(unique, library, **CONSTANTS)
    inputs = k.dense_inputs(4)
    dense.install("kernel", **CONSTANTS)
    assert dense.explain(inputs)["path"] == "kernel"
    assert dense.run(inputs).launches == 1
    # A call without constants does not have it.
    assert k.explain(dense.op, inputs)["path"] == "expansion"


def test_the_group_of_constants_speaks_first(unique: Unique, library: Path) -> None:
    dense = Dense(unique, library, **CONSTANTS)
    inputs = k.dense_inputs(4)
    dense.install("expansion", **CONSTANTS)
    dense.install("kernel")
    explanation = dense.explain(inputs)
    assert (explanation["path"], explanation["final"]) == ("expansion", True)
    assert "was not faster" in explanation["reason"]
    assert dense.run(inputs).replaced


def test_variables_at_rest_have_a_group(unique: Unique, library: Path) -> None:
    """The pass leaves the node, whatever was found of the kernels that take no constants."""
    dense = Dense(unique, library, _composite_variables=[1])
    inputs = k.dense_inputs(4)
    dense.install("expansion")
    assert dense.explain(inputs)["final"]
    assert dense.run(inputs).replaced
    dense.install("kernel", **CONSTANTS)
    explanation = dense.explain(inputs)
    assert (explanation["path"], explanation["final"]) == ("kernel", False)
    assert explanation["reason"].endswith(
        "; while input 1, which a variable holds, is not written to"
    )
    node = dense.function()
    done = counting(lambda: [node(**inputs) for _ in range(20)])
    assert (done.expansion_runs, done.launches) == (16, 4)


@pytest.mark.parametrize(
    ("options", "path", "reason"),
    [
        (("tf", ""), "expansion", 'backend="tf"'),
        (("auto", "strict"), "expansion", 'numerics="strict"'),
        (("auto", ""), "expansion", "the kernel was not faster: 9 us, against 3 us"),
        (("", "fast"), "expansion", "the kernel was not faster: 9 us, against 3 us"),
        (("tvm", ""), "kernel", "kernel k_any for shapes [s0,s1], [s1,s2], [s2]"),
    ],
)
def test_options(
    unique: Unique, library: Path, options: tuple[str, str], path: str, reason: str
) -> None:
    """Of a kernel that was measured slower."""
    stamps = dict(zip(("_composite_backend", "_composite_numerics"), options, strict=True))
    dense = Dense(unique, library, **stamps)
    inputs = k.dense_inputs(4)
    dense.install("expansion")
    explanation = dense.explain(inputs)
    assert (explanation["path"], explanation["final"]) == (path, path == "expansion")
    assert explanation["reason"].startswith(reason)
    done = dense.run(inputs)
    assert (done.launches == 1, done.replaced) == (path == "kernel", path == "expansion")


def test_one_row_waits_for_a_kernel_of_its_own(unique: Unique, library: Path) -> None:
    """A node stays while that is made, although what any number of rows has was slower."""
    dense = Dense(unique, library)
    inputs = k.dense_inputs(1)
    dense.install("expansion")
    with Compiling("silent"):
        for requests in (1, 0):
            explanation = dense.explain(inputs)
            assert "was not faster" in explanation["reason"]
            assert not explanation["final"]
            assert dense.run(inputs) == Done(launches=0, expansion_runs=1, requests=requests)


def test_an_empty_input_asks_for_nothing(unique: Unique, library: Path) -> None:
    dense = Dense(unique, library)
    inputs = k.dense_inputs(0)
    with k.Worker(refuse) as worker:
        explanation = dense.explain(inputs)
        assert not dense.run(inputs).replaced  # oneDNN's ops would end the process
        assert worker.requests == []
    assert not explanation["final"]
    assert explanation["reason"] == "an input is empty; no kernel is compiled for that"


def test_a_device_without_kernels(unique: Unique, library: Path) -> None:
    dense = Dense(unique, library)
    inputs = k.dense_inputs(4)
    dense.install("kernel")
    assert dense.explain(inputs, _device="CPU")["path"] == "kernel"
    explanation = dense.explain(inputs, _device="GPU")
    assert (explanation["path"], explanation["final"]) == ("expansion", True)
    assert explanation["reason"].startswith(
        "no kernels run on the device that this node is placed on: no "  # driver, or GPU
    )
    with k.options("tvm"):
        explanation = dense.explain(inputs, _device="GPU")
    assert (explanation["path"], explanation["final"]) == ("expansion", False)


def test_a_device_that_is_not_there_decides_nothing(unique: Unique, library: Path) -> None:
    """TensorFlow places the node on the CPU, where it has its kernel."""
    dense = Dense(unique, library)
    inputs = k.dense_inputs(4)
    dense.install("kernel")
    run = dense.function()

    def placed(x: Any, w: Any, b: Any) -> Any:
        with tf.device("/GPU:0"):
            return run(x, w, b) + 0.0

    previous = tf.config.get_soft_device_placement()
    tf.config.set_soft_device_placement(True)
    try:
        assert counting(lambda: tf.function(placed)(**inputs)).launches == 1
    finally:
        tf.config.set_soft_device_placement(previous)


PRELUDE = f"""
import json, tempfile
from pathlib import Path
import tensorflow as tf
from tests.runtime import kernel_support as k
from tests.runtime.kernels.dense_node import (
    OPS,
    SHAPES,
    Dense,
    Done,
    Unique,
    counting,
    refuse,
    tell_compiler,
)
from tests.runtime.kernels import test_decide as t
t.tell_compiler({OPS!r})
numbers = iter(range(9))
library = k.build(Path(tempfile.mkdtemp()), "k_any", k.DENSE_C)
dense = t.Dense(lambda stem: stem + str(next(numbers)), library)
inputs = k.dense_inputs(4)
"""


def test_without_a_compiler_no_kernel_is_final(run_python: Any) -> None:
    run_python(
        PRELUDE
        + """
with k.Worker(t.refuse) as worker:
    explanation = dense.explain(inputs)
    assert dense.run(inputs).replaced and not worker.requests
assert explanation["reason"] == "no kernel covers this call, and COMPOSITE_JIT=0", explanation
assert explanation["final"]
dense.install("kernel")
assert not dense.explain(inputs)["final"] and dense.run(inputs).launches == 1
""",
        env={"COMPOSITE_JIT": "0"},
    )


def test_deterministic_ops_keep_the_path_of_their_first_call(run_python: Any) -> None:
    """The node does not see what explain sees, and explain says so."""
    run_python(
        PRELUDE
        + """
tf.keras.utils.set_random_seed(1)
tf.config.experimental.enable_op_determinism()
node = dense.function()
assert t.counting(lambda: node(**inputs)).expansion_runs == 1
dense.install("kernel")
assert t.counting(lambda: node(**inputs)).expansion_runs == 1
explanation = dense.explain(inputs)
assert explanation["path"] == "kernel" and dense.run(inputs).launches == 1
end = "; with deterministic ops a node keeps the path of its first call"
assert explanation["reason"].endswith(end), explanation
"""
    )


def test_must_of_a_derived_op_is_auto(unique: Unique) -> None:
    """The pass and explain know it as well: CompositeCall is nobody's call."""
    function = tf.function(lambda x: tf.tanh(x) + x).get_concrete_function(tf.TensorSpec([3]))
    definition = function.function_def
    definition.signature.name = unique("rt_decide_derived")
    definition.attr.clear()
    library_def = tf.compat.v1.GraphDef().library
    library_def.function.append(definition)
    k.request("composite_register_function", library_def)
    dtypes = {"Tin": [tf.float32], "Tout": [tf.float32], "Tconstants": []}
    asked = k.node("", "CompositeCall", _in_shapes=[(3,)], _composite_backend="tvm", **dtypes)
    asked.attr["f"].func.name = definition.signature.name
    explanation = k.reply("composite_explain", asked)
    assert explanation["path"] == "expansion"
    assert "backend" not in explanation["reason"]


# A grid of situations: what explain says is what the node does, and whether there is a node.

PLAIN = ["", "unmeasured", "expansion", "kernel"]
WITH_CONSTANTS = ["unstamped", "", "expansion", "kernel"]
COMPILERS = ["none", "sleeping", "refusing", "silent"]


@dataclass
class Compiling:
    """The compiler of a situation: who answers requests."""

    kind: str

    def __enter__(self) -> k.Worker | None:
        self._worker = k.Worker(refuse) if self.kind == "refusing" else None
        if self.kind == "none":
            tell_compiler([])
        elif self.kind == "silent":  # requests wait for ever
            k.request("composite_worker", k.node("", "", running=True))
        return self._worker.__enter__() if self._worker else None

    def __exit__(self, *_: object) -> None:
        if self._worker is not None:
            self._worker.__exit__()
        k.request("composite_worker", k.node("", "", running=False))


@pytest.mark.parametrize("compiling", COMPILERS)
@pytest.mark.parametrize("rows", [4, 0])
def test_explain_the_node_and_the_pass_agree(
    unique: Unique, library: Path, rows: int, compiling: str
) -> None:
    inputs = k.dense_inputs(rows)
    for plain, constants, backend in itertools.product(PLAIN, WITH_CONSTANTS, ["", "tf", "tvm"]):
        stamps: dict[str, Any] = {} if constants == "unstamped" else dict(CONSTANTS)
        stamps |= {"_composite_backend": backend} if backend else {}
        dense = Dense(unique, library, **stamps)
        if plain:
            dense.install(plain)
        if constants not in ("unstamped", ""):
            dense.install(constants, **CONSTANTS)
        if backend == "tvm" and compiling == "silent":
            continue  # it would wait for ever
        with Compiling(compiling) as worker:
            # Before the first request, and after one and two answers.
            for _ in range({"refusing": 3, "silent": 2}.get(compiling, 1)):
                where = (plain, constants, backend, compiling, rows)
                agree(dense, inputs, where)
                if worker is not None:
                    worker.wait()


def agree(dense: Dense, inputs: dict[str, Any], where: Any) -> None:
    """Runs a node that explain was asked about."""
    said = dense.explain(inputs)
    why = (where, said["reason"])
    if "the call waits for its kernel, or raises" in said["reason"]:
        assert not said["final"], why
        with suppress(tf.errors.FailedPreconditionError):
            assert dense.run(inputs).launches == 1, why
        return
    done = dense.run(inputs)
    assert (done.launches == 1) == (said["path"] == "kernel"), why
    assert done.replaced == said["final"], why
    if said["path"] != "kernel":
        assert (done.requests > 0) == (NOT_YET_ASKED in said["reason"]), why
