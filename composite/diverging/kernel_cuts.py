"""Kernels beside the expansion, composite by composite; inside of one by kernels of its prefixes.

What a kernel computes on the way is not visible. Where one differs, its function is cut at a value:
the nodes that the value needs become a function of their own, a kernel is made of that, and what it
gives is compared. Bisection finds a value at which the kernel differs while that of the value
before agrees.
Not for: how the values of the expansion are computed (values.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.autodiff import graph_cut
from composite.binding import settings
from composite.binding.records import NodeDef
from composite.checking.kernels import refusal
from composite.diverging import values
from composite.diverging.deviation import Array, Deviation, in_precision, of_kernel
from composite.diverging.report import Divergence, Found
from composite.diverging.subject import Subject
from composite.diverging.values import EXPANSION, Way
from composite.ops import call, function_op, functions
from composite.reference import evaluate
from composite.reference.evaluate import Step
from composite.saving.portable import STANDS_FOR


class NoKernel(Exception):  # noqa: N818 - an answer
    """A function has no kernel; the message says why."""


class _Cut(NamedTuple):
    """A value that a function computes: one result of a node."""

    step: Step
    output: int
    value: Array

    @property
    def tensor(self) -> str:
        """Its name in a GraphDef."""
        return f"{self.step.node.name}:{self.output}"


def first(subject: Subject, rtol: float | None) -> Found:
    """The first composite whose kernel differs from its expansion, and where inside of it."""
    steps: list[Step] = []
    values.run(subject, Way(EXPANSION), steps.append)
    calls = [step for step in steps if _is_outermost_composite(step)]
    notes: list[str] = [] if calls else ["no composite is called"]
    compared = 0
    for one in calls:
        cuts = _Composite(subject, one, steps, rtol)
        try:
            deviation = cuts.whole()
        except NoKernel as reason:
            notes.append(f"{cuts.name}: no kernel: {reason}")
            continue
        compared += len(one.results)
        if deviation is not None:
            divergence = cuts.bisect(deviation)
            return Found(divergence, compared + cuts.made, (*notes, *cuts.notes))
    return Found(None, compared, tuple(dict.fromkeys(notes)))


def _is_outermost_composite(step: Step) -> bool:
    return STANDS_FOR in step.node.attr and not any(STANDS_FOR in n.attr for n in step.around)


class _Composite:
    """A composite that has run as its expansion."""

    def __init__(
        self, subject: Subject, of: Step, steps: Sequence[Step], rtol: float | None
    ) -> None:
        self._subject, self._call, self._rtol = subject, of, rtol
        library = {f.signature.name: f for f in subject.source.graph_def.library.function}
        reached = functions.reachable(of.node.attr["f"].func.name, library)
        self._library = FunctionDefLibrary(function=[library[name] for name in reached])
        self._body = functions.body(self._library)
        self._node = NodeDef.FromString(of.node.attr[STANDS_FOR].s)
        path = (*of.path, of.node.name)
        self._cuts = [cut for step in steps if step.path == path for cut in _cuts_of(step)]
        self._exact = self._in_double(of.inputs)
        self.name = self._node.op
        self.made = 0  # kernels of prefixes
        self.notes: list[str] = []

    def whole(self) -> Deviation | None:
        """How far the kernel that serves the call is off, at the worst output; None: it is not.

        NoKernel where none serves it.
        """
        if self._node.op == function_op.NAME:
            function_op.define(self._library)
        found = _with_kernel(lambda: call.eager_node(self._node, self._call.inputs))
        pairs = zip(self._call.results, found, self._exact[""], strict=True)
        each = [self._compare(a.numpy(), b.numpy(), c) for a, b, c in pairs]
        beyond = [one for one in each if one.is_beyond]
        return max(beyond, key=lambda one: one.error, default=None)

    def bisect(self, whole: Deviation) -> Divergence:
        """A value whose prefix has a kernel that differs, where the one before it has not."""
        cuts = list(self._cuts)
        agrees, differs = -1, len(cuts)
        found: dict[int, Deviation] = {}
        while differs - agrees > 1:
            middle = (agrees + differs) // 2
            try:
                found[middle] = self._of_prefix(cuts[middle])
            except NoKernel as reason:
                self.notes.append(f"not cut at {self._subject.place(cuts[middle].step)}: {reason}")
                del cuts[middle]
                differs -= 1
                found = {i if i < middle else i - 1: one for i, one in found.items()}
                continue
            if found[middle].is_beyond:
                differs = middle
            else:
                agrees = middle
        if differs == len(cuts):
            self.notes.append("no kernel of a prefix differs, only that of the whole")
            step, value, deviation = self._call, self._call.results[0].numpy(), whole
        else:
            step, value, deviation = cuts[differs].step, cuts[differs].value, found[differs]
        inherited = found[agrees].error if agrees in found else 0.0
        return Divergence.of(step, self._subject.place(step), value, deviation, inherited)

    def _of_prefix(self, cut: _Cut) -> Deviation:
        taken, library, constants = _prefix(self._body, cut.tensor, self._call.inputs)
        if function_op.keeps_state(library):
            raise NoKernel("its prefix keeps state")
        inputs = [self._call.inputs[i] for i in taken]
        found = _with_kernel(lambda: function_op.invoke(library, inputs, constants, {}))
        self.made += 1
        return self._compare(cut.value, found[0].numpy(), self._exact[cut.tensor][0])

    def _compare(self, expansion: Array, kernel: Array, exact: Array) -> Deviation:
        if self._rtol is not None:
            return in_precision(expansion, kernel, self._rtol)
        return of_kernel(expansion, kernel, exact)

    def _in_double(self, inputs: Sequence[Any]) -> Mapping[str, list[Array]]:
        """The values of the function in float64, by their names in a GraphDef; "": its outputs."""
        found: dict[str, list[Array]] = {}

        def seen(step: Step) -> None:
            if not step.path:
                found.update({cut.tensor: [cut.value] for cut in _cuts_of(step)})

        arrays = [x.numpy() for x in inputs]
        outputs = evaluate.evaluate(functions.in_double(self._body), arrays, seen=seen)
        return {**found, "": [y.numpy() for y in outputs]}


def _cuts_of(step: Step) -> list[_Cut]:
    if step.node.op in values.SILENT:
        return []
    results = enumerate(step.results)
    return [_Cut(step, k, y.numpy()) for k, y in results if not functions.is_handle(y.dtype)]


def _prefix(
    body: functions.Body, tensor: str, inputs: Sequence[Any]
) -> tuple[list[int], FunctionDefLibrary, int]:
    """What a value needs, as a function: which inputs, in which order; how many are constants."""
    names = [f"{name}:0" for name in body.inputs]
    pruned, read = graph_cut.needed(body.graph_def, set(names), [tensor])
    taken = [i for i, name in enumerate(names) if name in read]

    def cut(*given: Any) -> Any:
        fed = {names[i]: x for i, x in zip(taken, given, strict=True)}
        return tf.graph_util.import_graph_def(
            pruned, input_map=fed, return_elements=[tensor], name=""
        )

    specs = [tf.TensorSpec(inputs[i].shape, inputs[i].dtype) for i in taken]
    concrete = tf.function(cut, input_signature=specs, autograph=False).get_concrete_function()
    inner = concrete.graph.as_graph_def().library.function
    library = FunctionDefLibrary(function=[concrete.function_def, *inner])
    order, constants = function_op.constants_last(library)
    named = function_op.define(function_op.canonical(library, "prefix"))
    return [taken[i] for i in order], named, constants


def _with_kernel(run: Any) -> list[Any]:
    """What a call gives that a kernel has to serve. NoKernel where there is none."""
    try:
        with settings.options(backend="tvm"):
            return list(run())
    except tf.errors.FailedPreconditionError as error:
        if why := refusal(error):
            raise NoKernel(why) from error
        raise
