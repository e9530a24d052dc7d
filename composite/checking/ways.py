"""The ways in which one call is run and compared with its Python function.

A way is a function of a Case: it returns how close the results were, raises Difference where they
do not agree, and Skipped where there is nothing to compare.

Not for: gradients (gradients.py), kernels (kernels.py), tolerances (compare.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from composite.binding import settings
from composite.checking import batching, gradients, kernels, variables
from composite.checking.compare import Closeness, Difference, same_bits
from composite.checking.oracle import Case, Outcome, flat, outcome
from composite.checking.skipped import Skipped

Way = Callable[[Case], Closeness]


def eager(case: Case) -> Closeness:
    """An eager call, on TensorFlow's ops."""
    return case.agree(_eager(case))


def deterministic(case: Case) -> Closeness:
    """Two eager calls have the same bits."""
    first, second = _eager(case), _eager(case)
    if (first.error is None) != (second.error is None):
        raise Difference(f"one of two runs raises {first.told or second.told}")
    if first.error is None:
        same_bits(first.values, second.values, case.names)
    return Closeness()


def in_function(case: Case) -> Closeness:
    """A node in a tf.function, all shapes known."""
    return _agree_traced(case, lambda shape: shape)


def unknown_dims(case: Case) -> Closeness:
    """A node in a tf.function in which only ranks are known."""
    return _agree_traced(case, _dims_unknown)


def unknown_rank(case: Case) -> Closeness:
    """A node in a tf.function in which no shape is known."""
    return _agree_traced(case, lambda _: None)


def under_xla(case: Case) -> Closeness:
    """A node in a tf.function(jit_compile=True)."""
    if any(tf.as_dtype(x.dtype) == tf.string for x in case.sample.arrays()):
        # Not even to see it refused: TF 2.21 ends the process over an empty one.
        raise Skipped("XLA has no strings")
    found = _traced(case, _through_op(case), lambda shape: shape, jit_compile=True)
    if found.error is not None and (op := _NO_XLA_KERNEL.search(str(found.error))) is not None:
        raise Skipped(f"XLA has no kernel for {op[1] or op[2]}")
    if case.expected.error is not None and found.error is None:
        raise Skipped("the call raises, and XLA looks at no values")
    try:
        return case.agree(found)
    except Difference:
        # XLA draws other random numbers, lets another NaN through, wants a value to be known: what
        # it does with the body's own ops is right then.
        own = _traced(case, case.python, lambda shape: shape, jit_compile=True)
        if found.error is None and own.error is None:
            return case.compared(found, own)
        if isinstance(found.error, tf.errors.OpError) and own.error is not None:
            # Nor does it the body; or that has no graph without AutoGraph, since tensors decide.
            raise Skipped(f"XLA does not compile it: {found.told}") from None
        raise


# Of an op in the body, of the op itself for its dtypes.
_NO_XLA_KERNEL = re.compile(r"(\w+) is not supported by XLA|No registered '(\w+)' OpKernel for XLA")


def shapes(case: Case) -> Closeness:
    """The shape function: what it infers fits what comes out, and is exact if it can be."""
    actual = case.expected
    for what, loosened in (
        ("known shapes", lambda shape: shape),
        ("a first dim that is unknown", lambda shape: [None, *shape[1:]] if shape else shape),
        ("unknown dims", _dims_unknown),
        ("unknown ranks", lambda _: None),
    ):
        inferred = _inferred(case, _through_op(case), loosened)
        if isinstance(inferred, Exception):
            if actual.error is None:
                raise Difference(f"with {what}, tracing raises {Outcome([], inferred).told}")
            continue
        for index, (shape, value) in enumerate(zip(inferred, actual.values, strict=False)):
            if not shape.is_compatible_with(value.shape):
                raise Difference(
                    f"with {what}, output {index} is inferred as {shape}; it has {value.shape}"
                )
        # What a variable holds is no part of what the op infers from.
        if what == "known shapes" and actual.error is None and not case.sample.variables:
            _check_exact(case, inferred)
    return Closeness()


def _check_exact(case: Case, inferred: list[Any]) -> None:
    """With all input shapes known, the op infers no less than TensorFlow does for the body."""
    body = _inferred(case, case.python, lambda shape: shape)
    if isinstance(body, Exception):
        return  # it needs values, so TensorFlow knows nothing of it
    for index, (ours, theirs) in enumerate(zip(inferred, body, strict=True)):
        if theirs.is_fully_defined() and not ours.is_fully_defined():
            raise Difference(f"output {index} is inferred as {ours}, and its body's as {theirs}")


def _dims_unknown(shape: Any) -> Any:
    return [None] * len(shape)


def _eager(case: Case) -> Outcome:
    with settings.options(backend="tf"):
        return outcome(lambda: variables.results(_through_op(case), case.sample.tensors()))


def _through_op(case: Case) -> Callable[[Any], Any]:
    def call(inputs: Any) -> Any:
        result = case.op(*inputs, **case.sample.attrs)
        return None if isinstance(result, tf.Operation) else result  # an op without outputs

    return call


def _concrete(
    function: Callable[[Any], Any],
    inputs: list[Any],
    loosened: Callable[[Any], Any],
    *,
    jit_compile: bool | None = None,
) -> Any:
    """A traced call: a function of the tensors among the inputs, which captures the variables."""
    everything = tf.nest.flatten(inputs)
    specs = [tf.TensorSpec(loosened(x.shape.as_list()), x.dtype) for x in _tensors(inputs)]

    def call(*tensors: Any) -> Any:
        left = iter(tensors)
        given = [x if isinstance(x, tf.Variable) else next(left) for x in everything]
        return function(tf.nest.pack_sequence_as(inputs, given))

    with settings.options(backend="tf"):
        traced = tf.function(call, input_signature=specs, autograph=False, jit_compile=jit_compile)
        return traced.get_concrete_function()


def _tensors(inputs: list[Any]) -> list[Any]:
    return [x for x in tf.nest.flatten(inputs) if not isinstance(x, tf.Variable)]


def _agree_traced(case: Case, loosened: Callable[[Any], Any]) -> Closeness:
    found = _traced(case, _through_op(case), loosened)
    try:
        return case.agree(found)
    except Difference:
        # TensorFlow rewrites graphs: a body that it gives other results in a graph than eagerly
        # is compared with those.
        rewritten = _traced(case, case.python, loosened)
        if found.error is not None or rewritten.error is not None or case.expected.error:
            raise
        return case.compared(found, rewritten)


def _traced(
    case: Case,
    function: Callable[[Any], Any],
    loosened: Callable[[Any], Any],
    *,
    jit_compile: bool | None = None,
) -> Outcome:
    def run(inputs: list[Any]) -> Any:
        concrete = _concrete(function, inputs, loosened, jit_compile=jit_compile)
        return concrete(*_tensors(inputs))

    return outcome(lambda: variables.results(run, case.sample.tensors()))


def _inferred(
    case: Case, function: Callable[[Any], Any], loosened: Callable[[Any], Any]
) -> list[Any] | Exception:
    try:
        concrete = _concrete(function, case.sample.tensors(), loosened)
    except Exception as error:  # noqa: BLE001 - a body may raise anything
        return error
    return [x.shape for x in flat(concrete.structured_outputs)]


WAYS: dict[str, Way] = {
    "eager": eager,
    "tf.function": in_function,
    "unknown dims": unknown_dims,
    "unknown ranks": unknown_rank,
    "XLA": under_xla,
    "shape function": shapes,
    "deterministic": deterministic,
    "gradient": gradients.derived,
    "numeric gradient": gradients.numeric,
    "second gradient": gradients.second,
    "vectorized_map": batching.mapped,
    "kernel": kernels.dispatched,
    "kernel, unaligned": kernels.unaligned,
}
