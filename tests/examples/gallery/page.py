"""docs/gallery.md: the ops of the gallery, and what keeps each of them from a kernel.

A kernel is planned for each request that the runtime makes for the calls of `calls`; none is
compiled.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

import tensorflow as tf

import composite
from composite.binding import native
from composite.binding.call_request import CallRequest
from composite.binding.kernel_request import KernelRequest
from composite.binding.records import NodeDef, python_values
from composite.compiler.tvm import NotCovered
from composite.compiler.tvm.build import make_module
from composite.compiler.tvm.plan.plan import make_plan
from composite.compiler.tvm.read.reader import read_function
from composite.compiler.tvm.target import Target
from composite.compiler_process.client import Stopped
from composite.kernels import produce
from composite.kernels.expansions import expand
from composite.ops import function_op
from tests.examples.gallery.calls import CALLS, Call

_FINAL = "no kernel covers this call, and none can be compiled: "
_OF_FUNCTION = re.compile(r"__composite_\w+: ")  # its name has a digest in it
_HEAD = """\
# Gallery

<!-- Generated: pytest --update-golden tests/examples/gallery/test_page.py -->

Ops that people write, a file each in [examples/gallery](../examples/gallery). Copy the file of an
op, and `precision.py` with it.

The tests compare the values and gradients of each op with a reference in float64, and run
[`composite.check`](checking.md) on it. "Lines" counts those of the body. The last two columns say
whether the op and its gradient have a kernel, for calls in float32 with known shapes; if not, the
reason is below. What has no kernel runs as TensorFlow's ops.
"""


def page() -> str:
    """The page."""
    rows = ["| op | what it is | lines | kernel | gradient |", "|---|---|---|---|---|"]
    sections: list[str] = []
    for op in dict.fromkeys(call.op for call in CALLS):
        reasons = [why(call) for call in CALLS if call.op is op]
        forward, gradient = (set().union(*(r[i] for r in reasons)) for i in range(2))
        anchor = op.op_name.lower()
        marks = ["no" if found else "yes" for found in (forward, gradient)]
        module = sys.modules[op.python_function.__module__]
        title = (module.__doc__ or "").partition(":")[0]
        rows.append(f"| [{op.op_name}](#{anchor}) | {title} | {lines(op)} | {' | '.join(marks)} |")
        sections += section(op, {"kernel": forward, "kernel of its gradient": gradient})
    return "\n".join([_HEAD, *rows, "", *sections]).rstrip() + "\n"


def section(op: Any, reasons: dict[str, set[str]]) -> list[str]:
    """What is said of one op."""
    file = str(op.python_function.__module__).replace(".", "/") + ".py"
    text = [f"## {op.op_name}", "", f"[{file}](../{file})", ""]
    for what, found in reasons.items():
        text += [f"No {what}: {reason}.\n" for reason in sorted(found)]
    return [*text, f"```{{literalinclude}} ../{file}", ":language: python", "```", ""]


def lines(op: Any) -> int:
    """The lines of an op's body, without its docstring."""
    (tree,) = ast.parse(inspect.getsource(op.python_function)).body
    assert isinstance(tree, ast.FunctionDef)
    first, last = tree.body[1], tree.body[-1]
    return (last.end_lineno or 0) - first.lineno + 1


def why(call: Call) -> tuple[set[str], set[str]]:
    """What keeps a call from a kernel, and what keeps its gradient; empty where nothing does."""
    inputs = tf.nest.map_structure(tf.constant, call.inputs)
    floats = [x for x in inputs if not isinstance(x, list) and x.dtype.is_floating]

    @tf.function
    def gradients() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(floats)
            ys = tf.nest.flatten(call.op(*inputs, **call.attrs))
            total = sum(tf.reduce_sum(y) for y in ys if y.dtype.is_floating)
        return tape.gradient(total, floats)

    kinds = (call.op.op_name, function_op.NAME)
    nodes = gradients.get_concrete_function().graph.get_operations()
    final = {kind: {impossible(node) for node in nodes if node.type == kind} for kind in kinds}
    with planned() as forward:
        call.op(*inputs, **call.attrs)
        composite.wait()
    with planned() as both:
        gradients()
        composite.wait()
    backward = {reason for name, reason in both.items() if name not in forward}
    return (
        {*forward.values(), *final[call.op.op_name]} - {""},
        {*backward, *final[function_op.NAME]} - {""},
    )


def impossible(node: tf.Operation) -> str:
    """Why the runtime asks for no kernel for a node; "" if it does."""
    # Which sizes they are says nothing of what the body holds.
    shapes = tuple(tf.TensorShape([size or 1 for size in x.shape]) for x in node.inputs)
    request = CallRequest.of_node(node.type, dict(node.node_def.attr), in_shapes=shapes)
    reply = native.call("composite_explain", request.to_node_def())
    told = python_values(NodeDef.FromString(reply))
    return told["reason"].removeprefix(_FINAL) if told["final"] else ""


@contextlib.contextmanager
def planned() -> Iterator[dict[str, str]]:
    """By request, why no kernel can be made for it, or ""."""
    found: dict[str, str] = {}

    def plan(request: KernelRequest, *_args: Any, **_options: Any) -> Any:
        name = f"{request.op} {request.program}"
        found[name] = ""
        try:
            shapes = request.in_shapes
            function = read_function(expand(request, shapes), shapes, request.size_inputs)
            make_module(make_plan(function), Target.host(), "k")
        except NotCovered as reason:
            if reason.sizes:
                raise  # it is asked for again, with their values
            found[name] = _OF_FUNCTION.sub("", str(reason))
        except RuntimeError as reason:
            found[name] = _OF_FUNCTION.sub("", str(reason))
        raise Stopped  # nothing is compiled

    with mock.patch.object(produce, "produce", plan):
        yield found
