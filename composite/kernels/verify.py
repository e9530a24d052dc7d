"""Compares a new kernel with the expansion before its results are used.

Floating outputs are compared with the expansion in float64, within the bounds of `tolerance`, on
ordinary inputs and on those of `adversarial`. Infinities and NaNs must be where the expansion has
them, unless the kernel leaves such inputs to the expansion. All other outputs must be equal. Inputs
and outputs are only aligned to an element, and outputs lie between guards, so that a kernel that
assumes more alignment or writes outside is detected. If some accesses of a kernel are not proven to
be in bounds, a build of it with guards runs first, which ends the call before an access outside of
a buffer. All of this is done with one task in each parallel loop and with several, whose results
may differ in rounding only, and with outputs in the memory of inputs, where that is allowed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from composite.compiler import account
from composite.compiler.tvm.ir.constants import Packed
from composite.kernels import host
from composite.kernels.samples import Sample, Samples
from composite.reference import adversarial, floats, tolerance
from composite.reference.directed import Sides
from composite.reference.evaluate import Step, evaluate
from composite.reference.tolerance import Reference

Array = np.ndarray[Any, Any]

Forwards = Sequence[Sequence[int]]

_GUARD = 32  # elements
_TASKS = 3  # does not divide the usual sizes, and is small enough for small loops


class Accuracy(NamedTuple):
    """How close a kernel was to its expansion on all inputs of its check."""

    error: float  # the largest error, to two digits; 0 if all outputs were equal
    unit: str
    same_bits: bool  # whether all outputs had the bits of the expansion
    algebra: str = ""  # the result of the comparison by algebra; "" if there was none


class Mismatch(Exception):  # noqa: N818 - the verdict on a kernel
    """The kernel computes something else than the expansion; the message has the difference."""


def check(  # noqa: PLR0913, PLR0917 - a kernel and all that it is compared on
    library: Path,
    name: str,
    expansions: Callable[[Sequence[tuple[int, ...]]], Any],
    cases: Sequence[Sequence[tuple[int, ...]]],
    packed: Sequence[Packed] = (),
    forwards: Forwards = (),
    guarded: str = "",
) -> Accuracy:
    """Runs the kernel on ordinary inputs of each case, and on adversarial ones of the last.

    `expansions(shapes)` gives the expansion (a FunctionDefLibrary) for exact shapes; `packed` are
    the constants that the kernel takes after its outputs, `forwards` the inputs whose memory each
    output may use, and `guarded` the name of the same kernel with guarded accesses, if there is
    one. Raises Mismatch if an output or an access is wrong.
    """
    return Oracle(Samples(expansions, cases)).check(library, name, packed, forwards, guarded)


class Oracle:
    """The expected results of `check`, with which several kernels can be compared."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = samples

    def check(  # noqa: PLR0913 - a kernel and all that is known of it
        self,
        library: Path,
        name: str,
        packed: Sequence[Packed] = (),
        forwards: Forwards = (),
        guarded: str = "",
        *,
        alignment: int = 0,
    ) -> Accuracy:
        """As the function `check`.

        `alignment`: of all addresses, if the kernel needs more than that of an element.
        """
        run = partial(results, library, name, packed, forwards, guarded, alignment)
        return self.compare(run)

    @account.step("check")
    def compare(self, results: Callable[[Sample], Iterable[tuple[int, list[Array]]]]) -> Accuracy:
        """Compares the outputs that `results` yields for each sample, with their number of tasks.

        Raises Mismatch if an output is wrong, or if `results` does.
        """
        worst, same_bits, unit, refused = 0.0, True, "", ""
        sides: defaultdict[tuple[int, int], Sides] = defaultdict(Sides)  # of a way and an output
        for sample in self._samples:
            try:
                for way, (tasks, found) in enumerate(results(sample)):
                    own = [sides[way, i] for i in range(len(found))]
                    worst = max(worst, _worst(sample, tasks, found, own))
                    pairs = zip(found, sample.expected, strict=True)
                    same_bits = same_bits and all(y.tobytes() == z.tobytes() for y, z in pairs)
            except host.Refused as answer:
                # TensorFlow does not check the indices of a gather with an empty result.
                if all(x.size for x in sample.inputs) and any(y.size for y in sample.expected):
                    finite = all(map(_is_finite, sample.expected))
                    if not sample.draw.special and finite and not _meets_nan(sample):
                        told = f"it leaves {sample.draw.kind} to the expansion: {answer}"
                        raise Mismatch(told) from answer
                    refused = str(answer)
                continue  # the expansion serves such inputs
            unit = f"|y| against {sample.source.standard} on adversarial inputs"
        if refused and not unit:
            raise Mismatch(f"it leaves all inputs to the expansion: {refused}")
        return Accuracy(float(f"{worst:.2g}"), unit, same_bits)


def results(  # noqa: PLR0913, PLR0917 - a kernel and all that it is called with
    library: Path,
    name: str,
    packed: Sequence[Packed],
    forwards: Forwards,
    guarded: str,
    alignment: int,
    sample: Sample,
) -> Iterator[tuple[int, list[Array]]]:
    """Yields the outputs of one task, and of several tasks and in place if their bits differ.

    Raises Mismatch if a guard finds a wrong access, or the kernel writes outside of its outputs.
    """
    if guarded:
        _run_guarded(library, guarded, sample, packed, forwards)
    inputs = [floats.aligned(x, alignment) for x in sample.inputs] if alignment else sample.inputs
    called = partial(run_kernel, library, name, inputs, sample.expected, alignment=alignment)
    serial = called(packed=packed)
    yield 1, serial
    for over in _places(forwards):
        found = called(_TASKS, packed=packed, over=over)
        if any(y.tobytes() != z.tobytes() for y, z in zip(found, serial, strict=True)):
            yield _TASKS, found


def _meets_nan(sample: Sample) -> bool:
    """Whether an intermediate result is NaN; integer outputs, such as places, do not show it."""
    found = []

    def look(step: Step) -> None:
        own = [np.asarray(y) for y in step.results if y.dtype.is_floating]
        found.append(any(np.isnan(y).any() for y in own))

    evaluate(sample.source.body, sample.draw.arrays, seen=look)
    return any(found)


def _is_finite(array: Array) -> bool:
    return not floats.is_floating(array) or bool(np.isfinite(array).all())


def _run_guarded(
    library: Path, name: str, sample: Sample, packed: Sequence[Packed], forwards: Forwards
) -> None:
    """Raises Mismatch if the guards find an access outside of a buffer, or a division by 0."""
    for tasks, over in ways(forwards):
        try:
            run_kernel(
                library, name, sample.inputs, sample.expected, tasks, packed=packed, over=over
            )
        except host.Refused:
            raise
        except RuntimeError as error:
            raise Mismatch(f"of {sample.shapes}, {sample.draw.kind}: {error}") from error


def ways(forwards: Forwards) -> Iterator[tuple[int, dict[int, int]]]:
    """The ways to call a kernel: the number of tasks, and which outputs lie in which inputs."""
    yield 1, {}
    for over in _places(forwards):
        yield _TASKS, over


def _places(forwards: Forwards) -> Iterator[dict[int, int]]:
    """Assignments of outputs to the inputs in which they lie: none, then as many as possible.

    Together they cover each pair of `forwards`. In the step of an optimizer, for example, outputs
    lie in all variables.
    """
    yield {}
    pending = [(output, one) for output, inputs in enumerate(forwards) for one in inputs]
    while pending:
        over: dict[int, int] = {}
        for output, one in pending:
            if output not in over and one not in over.values():
                over[output] = one
        yield over
        pending = [pair for pair in pending if over.get(pair[0]) != pair[1]]


def _worst(sample: Sample, tasks: int, found: Sequence[Array], sides: Sequence[Sides]) -> float:
    """The largest error of a kernel's outputs. Mismatch if an error is larger than allowed.

    `sides`: of each output, of the samples before this one.
    """
    worst = 0.0
    divided = f" by {tasks} tasks," if tasks > 1 else ""
    for i, outputs in enumerate(zip(found, sample.expected, sample.references, strict=True)):
        what = f"output {i} of {sample.shapes}, {sample.draw.kind},{divided}"
        worst = max(worst, distance(what, *outputs, sample.draw, sides[i]))
    return worst


def run_kernel(  # noqa: PLR0913 - a kernel and all that it is called with
    library: Path,
    name: str,
    inputs: Sequence[Array],
    like: Sequence[Array],
    tasks: int = 1,
    *,
    packed: Sequence[Packed] = (),
    over: Mapping[int, int] = MappingProxyType({}),
    alignment: int = 0,
    steps: int = host.MOST_STEPS,
) -> list[Array]:
    """Runs a kernel with this number of tasks in each loop. The outputs have the form of `like`.

    `over`: maps outputs to the inputs in whose memory they lie. `alignment`: of the outputs, if it
    is more than that of an element. `steps`: see `host.call`.

    Raises Mismatch if it writes outside of them, RuntimeError if it rejects its arguments, TooLong.
    """
    rooms = [np.full(y.size + 2 * _GUARD + alignment + 1, 77, y.dtype) for y in like]
    begins = [_begin(room, alignment) for room in rooms]
    outputs = [
        room[begin : begin + y.size].reshape(y.shape)
        for room, begin, y in zip(rooms, begins, like, strict=True)
    ]
    made = host.pack(library, name, inputs, packed, tasks, steps)
    given = list(inputs)
    for output, taken in over.items():
        outputs[output][...] = given[taken].reshape(outputs[output].shape)
        given[taken] = outputs[output].reshape(given[taken].shape)
    host.call(library, name, [*given, *outputs, *made], tasks, steps)
    for room, begin, y in zip(rooms, begins, like, strict=True):
        guards = np.concatenate([room[:begin], room[begin + y.size :]])
        if (guards != np.full(1, 77, y.dtype)).any():
            raise Mismatch("the kernel wrote outside its output")
    return outputs


def _begin(room: Array, alignment: int) -> int:
    """The start of an output in its memory, after the guard: an aligned or an unaligned address."""
    if not alignment:
        return _GUARD + 1
    return _GUARD + floats.gap(room[_GUARD:], alignment)


_ORDINARY = adversarial.Draw("", [])


def distance(  # noqa: PLR0913, PLR0917 - an output, what it is compared with, and where it is from
    what: str,
    kernel: Array,
    expansion: Array,
    reference: Reference,
    draw: adversarial.Draw = _ORDINARY,
    sides: Sides | None = None,
) -> float:
    """The kernel's error relative to |y| of the row. Mismatch if it is larger than allowed.

    `sides`: of other runs, of too few numbers each to tell to which side they are rounded.
    """
    if kernel.size == 0:
        return 0.0
    if not floats.is_floating(kernel):
        other = kernel != expansion
        if draw.denormal:
            other &= kernel != reference.exact
        if _is_left(other, (kernel != run for run in reference.nearby())):
            first = int(np.flatnonzero(other)[0])
            raise Mismatch(
                f"{what} differs in {np.count_nonzero(other)} elements; at"
                f" [{_place(first, kernel)}] it is {kernel.flat[first]},"
                f" and {expansion.flat[first]} is expected"
            )
        return 0.0
    exact = floats.in_range(reference.exact, kernel.dtype)
    _compare_places(what, kernel, expansion, reference, draw)
    verdict = tolerance.judge(kernel, reference._replace(exact=exact))
    if verdict.at is not None:
        raise Mismatch(
            f"{what} is off by {verdict.error:.2g} of |y| at [{_place(verdict.at, kernel)}];"
            f" {verdict.allowed:.2g} is allowed; it is {kernel.flat[verdict.at]},"
            f" and {exact.flat[verdict.at]} is expected"
        )
    sides = Sides() if sides is None else sides
    if not draw.denormal:
        sides.add(kernel, exact, reference.own)
    if sides.is_one_sided:
        raise Mismatch(f"{what} is always rounded to one side, not to the nearest number")
    return verdict.error


def _compare_places(
    what: str, kernel: Array, expansion: Array, reference: Reference, draw: adversarial.Draw
) -> None:
    """Raises Mismatch if the expansion and its reference have other infinities or NaNs."""
    exact = floats.in_range(reference.exact, kernel.dtype)
    # Rounding decides what overflows: the expansion may overflow before a finite result, or stay
    # finite where the exact result is too large. TensorFlow's ops for float32 and for float64 also
    # differ in the erf of an infinity, and in a softmax or a padded convolution of a NaN. The
    # kernel may agree with either.
    other = _differs(kernel, expansion, draw) & _differs(kernel, exact, draw)
    if draw.denormal or draw.special:
        other &= _differs(kernel, reference.own, draw)
    if other.any():
        other &= ~np.asarray(reference.undetermined())
    # Where numbers cancel, rounding decides the sign of the rest, which a root may read.
    if _is_left(other, (_differs(kernel, run, draw) for run in reference.nearby())):
        first = int(np.flatnonzero(other)[0])
        raise Mismatch(
            f"{what} has infinities or NaNs in other places; at [{_place(first, kernel)}] it is"
            f" {kernel.flat[first]}, and {expansion.flat[first]} is expected"
        )


def _is_left(other: Array, runs: Iterable[Array]) -> bool:
    """Whether an element differs in all of these runs too. Clears the others in `other`."""
    for run in runs if other.any() else ():
        other &= run
        if not other.any():
            return False
    return bool(other.any())


def _place(flat: int, array: Array) -> str:
    return ", ".join(str(int(n)) for n in np.unravel_index(flat, array.shape))


def _differs(found: Array, expected: Array, draw: adversarial.Draw) -> Array:
    """Where only one of the two is finite, or they are different infinities or NaNs."""
    finite = np.isfinite(expected)
    other = np.isfinite(found) != finite
    if draw.special and not draw.fed_back:  # otherwise it may depend on the order of a sum
        kind = (np.isnan(found) != np.isnan(expected)) | (np.sign(found) != np.sign(expected))
        other |= ~finite & kind & ~(np.isnan(found) & np.isnan(expected))
    return np.asarray(other)
