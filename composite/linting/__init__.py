"""`composite.lint`: what keeps an op's calls and their gradients from kernels, and the remedies.

The compiler is asked, up to the loops: no code is generated, nothing is run or measured.

Not for: whether a kernel is right (checking/), or faster (tuning/, `composite.explain`).
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from composite.aot import sources, stated_calls
from composite.binding.records import PROGRAM, python_value
from composite.compiler.tvm import table
from composite.compiler.tvm.read.obstacles import Obstacle
from composite.linting import calls, cautions, refusals, remedies
from composite.linting.report import Coverage, Finding, LintReport
from composite.ops.op import CompositeOp

_Attrs = tuple[tuple[str, str], ...]  # the attributes of a call, as text

__all__ = ["Coverage", "Finding", "LintReport", "lint"]


def lint(
    source: str | os.PathLike[str] | CompositeOp | Iterable[CompositeOp],
    call: Mapping[str, Any] | None = None,
    *,
    kinds: int = 16,
) -> LintReport:
    """Says which calls of ops, and which of their gradients, have no kernel, why, and the remedy.

    Looks at the calls that are stated beside an op, in every dtype that the declaration allows. For
    an op without any, it finds calls as `composite.build` does: of each dtype and each value of an
    enumerated attribute, with the ranks that the Python function takes. The forward is compiled for
    dims that vary and for known ones, the gradient for known ones, both up to the loops: nothing is
    run or measured. TVM is imported into this process.

    Args:
        source: a Python file, an op, or several ops.
        call: the one call to look at, as `CompositeOp.add_signature` takes it, and `source` is one
            op then. Attributes without any input are those of all calls.
        kinds: how many calls to look at where they have to be found.

    Returns:
        A LintReport; `print` it.

    Raises:
        ValueError, TypeError: for a call that is none, or a file without ops.
        FileNotFoundError: if there is no such file.
    """
    ops = sources.find(source).ops
    if call is not None and len(ops) != 1:
        raise ValueError(f"a call is of one op, and there are {len(ops)}")
    findings: list[Finding] = []
    coverage = []
    for op in ops:
        one = _Lint(op)
        one.look(call, kinds)
        if call is not None and not one.coverage.calls:
            raise ValueError(f"{op.__name__}: {'; '.join(one.coverage.notes)}")
        findings += one.findings()
        coverage.append(one.coverage)
    return LintReport(findings, coverage)


class _Lint:
    """What is found of one op."""

    def __init__(self, op: CompositeOp) -> None:
        self._op = op
        self.coverage = Coverage(op.__name__)
        # By what is the same in all calls: the directions and the calls in which it was met.
        self._found: dict[Finding, tuple[dict[str, None], dict[_Attrs, None]]] = {}
        self._calls: list[_Attrs] = []

    def look(self, given: Mapping[str, Any] | None, most: int) -> None:
        """Looks at all calls."""
        chosen = calls.of(self._op, given, most)
        if chosen.note:
            self.coverage.note(chosen.note)
        if not chosen.calls:
            self._add_reachable()
        for call in chosen.calls:
            self._look_at(call)

    def _look_at(self, call: calls.Call) -> None:
        request = stated_calls.request(self._op, call)
        told = tuple((name, _text(value)) for name, value in sorted(request.attrs.items()))
        try:
            known = refusals.known(self._op, call, request)
        except (ValueError, TypeError, tf.errors.OpError) as error:
            self.coverage.note(f"it refuses {stated_calls.described(request)}: {error}")
            return
        forward = refusals.forward(request, known)
        self._calls.append(told)
        self.coverage.calls += 1
        self.coverage.forward += not forward.obstacles
        for one in forward.obstacles:
            self._add(one, "forward", told, remedies.of(one))
        for one in forward.varying:
            reason = f"a dim that varies has no kernel, only known sizes have: {one.reason}"
            self._warn(one, reason, "forward", told, remedies.KNOWN_SIZES)
        if forward.library is None:  # it looks at a value, which the call alone does not tell
            return
        if not forward.obstacles:
            for one in cautions.wide(forward.library, known.in_shapes):
                reason = f"it is computed in {one.reason}, and no input has 64 bits"
                self._warn(one, reason, "forward", told, remedies.NARROW)
        gradient = refusals.gradient(self._op, call, known, forward.library)
        if gradient is not None:
            self._add_gradient(gradient, forward.obstacles, told)

    def _add_gradient(
        self, gradient: refusals.Gradient, forward: Sequence[Obstacle], told: _Attrs
    ) -> None:
        if gradient.why_none:
            self.coverage.note(gradient.why_none)
            return
        self.coverage.gradients += 1
        self.coverage.backward += not gradient.obstacles
        for one in gradient.obstacles:
            remedy = remedies.of(one) if one in forward else remedies.GRADIENT
            self._add(one, "gradient", told, remedy)
        for one in gradient.again if not gradient.obstacles else ():
            reason = f"the backward computes {one.op} again"
            self._warn(one, reason, "gradient", told, remedies.KEEP)

    def _add_reachable(self) -> None:
        """Without a call: the ops of the program that no kernel may hold, whatever the call."""
        for op in sources.with_callees([self._op]):
            nodes = [node for function in op.program.function for node in function.node_def]
            for node in nodes:
                name = node.attr["op"].s.decode() if "op" in node.attr else ""
                if name and name not in table.NAMES and PROGRAM not in node.attr:
                    reason = f"op {name} is not in the kernel table"
                    one = Obstacle(name, reason, node.attr["_loc"].s.decode())
                    self._add(one, "forward", (), remedies.of(one))

    def _warn(self, one: Obstacle, reason: str, direction: str, call: _Attrs, remedy: str) -> None:
        self._add(one._replace(reason=reason), direction, call, remedy, refuses=False)

    def _add(
        self, one: Obstacle, direction: str, call: _Attrs, remedy: str, *, refuses: bool = True
    ) -> None:
        place = one.place or self._op.place
        finding = Finding(self._op.__name__, place, one.reason, remedy, refuses=refuses)
        directions, told = self._found.setdefault(finding, ({}, {}))
        directions[direction] = None
        told[call] = None

    def findings(self) -> list[Finding]:
        """All of it: first what refuses kernels."""
        found = [
            dataclasses.replace(finding, directions=tuple(directions), calls=self._named(told))
            for finding, (directions, told) in self._found.items()
        ]
        found += cautions.of_declaration(self._op)
        return sorted(found, key=lambda finding: not finding.refuses)

    def _named(self, calls_: Collection[_Attrs]) -> tuple[str, ...]:
        """Calls by the attributes in which those of the op differ; none for all calls."""
        if len(calls_) == len(set(self._calls)):
            return ()
        values = set(itertools.chain(*self._calls))
        same = {one for one in values if all(one in call for call in self._calls)}
        named = ([f"{n}={v}" for n, v in call if (n, v) not in same] for call in calls_)
        return tuple(", ".join(one) for one in named if one)


def _text(value: Any) -> str:
    """An attribute for people: a float32 with the digits that it has."""
    plain = python_value(value)
    return f"{plain:g}" if isinstance(plain, float) else str(getattr(plain, "name", plain)) or '""'
