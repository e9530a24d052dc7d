"""Compares a new kernel with the expansion, before anybody is given its results.

Floating outputs are held against the expansion computed in float64, within the bounds of
`tolerance`, on ordinary inputs and on those of `adversarial`; infinities and NaNs stand where the
expansion has them, unless the kernel leaves such inputs to it. The rest must be equal. Inputs and
outputs lie at addresses with no alignment but that of an element, and outputs between guards, so a
kernel that assumes more or writes outside is found here. One whose accesses are not all proven has
run before in a build that ends the call in front of an access outside of its buffer. All of this
holds for one task in each parallel loop and for several, whose results may differ in rounding only;
and for outputs that lie in the memory of an input, where they may.
"""

from __future__ import annotations

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
from composite.reference import adversarial, directed, floats, tolerance
from composite.reference.tolerance import Reference

Array = np.ndarray[Any, Any]

Forwards = Sequence[Sequence[int]]

_GUARD = 32  # elements
_TASKS = 3  # neither a divisor of the usual sizes nor so many that small loops have too few parts


class Accuracy(NamedTuple):
    """How near a kernel was to its expansion on all inputs of its check."""

    error: float  # the largest, to two digits; 0 when every output was equal
    unit: str
    same_bits: bool  # whether every output had the expansion's bits
    algebra: str = ""  # what is said of it over the ring; "" where it was not compared so


class Mismatch(Exception):  # noqa: N818 - the verdict on a kernel
    """The kernel does not compute what the expansion does; the message says how far off."""


def check(  # noqa: PLR0913, PLR0917 - a kernel and all that it is compared on
    library: Path,
    name: str,
    expansions: Callable[[Sequence[tuple[int, ...]]], Any],
    cases: Sequence[Sequence[tuple[int, ...]]],
    packed: Sequence[Packed] = (),
    forwards: Forwards = (),
    guarded: str = "",
) -> Accuracy:
    """Runs the kernel on ordinary inputs of each case's shapes, on adversarial ones of the last's.

    `expansions(shapes)` gives the expansion (a FunctionDefLibrary) for exact shapes; `packed` is
    what the kernel takes after its outputs, `forwards` the inputs that each output may lie in,
    `guarded` the name of the same kernel with its accesses guarded, if there is one.
    Mismatch when an output is wrong, or an access.
    """
    return Oracle(Samples(expansions, cases)).check(library, name, packed, forwards, guarded)


class Oracle:
    """What `check` compares with; other kernels are compared with the same."""

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

        `alignment`: what all addresses are multiples of, where that is more than an element's.
        """
        run = partial(results, library, name, packed, forwards, guarded, alignment)
        return self.compare(run)

    @account.step("check")
    def compare(self, results: Callable[[Sample], Iterable[tuple[int, list[Array]]]]) -> Accuracy:
        """Compares the outputs that `results` gives for each sample, with how many tasks did it.

        Mismatch when an output is wrong, or `results` says so.
        """
        worst, same_bits, unit, refused = 0.0, True, "", ""
        for sample in self._samples:
            try:
                for tasks, found in results(sample):
                    worst = max(worst, _worst(sample, tasks, found))
                    pairs = zip(found, sample.expected, strict=True)
                    same_bits = same_bits and all(y.tobytes() == z.tobytes() for y, z in pairs)
            except host.Refused as answer:
                # TensorFlow looks at no index of a gather that gives no elements.
                if any(y.size for y in sample.expected):
                    if not sample.draw.special and all(map(_is_finite, sample.expected)):
                        raise
                    refused = str(answer)
                continue  # the expansion runs on such inputs
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
    """The outputs by one task, and by several and in place unless they are the same to the bit.

    Mismatch when a guard finds a wrong access, or the kernel wrote outside of its outputs.
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


def _is_finite(array: Array) -> bool:
    return not floats.is_floating(array) or bool(np.isfinite(array).all())


def _run_guarded(
    library: Path, name: str, sample: Sample, packed: Sequence[Packed], forwards: Forwards
) -> None:
    """Mismatch when a kernel's guards find an access outside of its buffer, or a division by 0."""
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
    """The ways to call a kernel: by how many tasks, and which outputs lie in which inputs."""
    yield 1, {}
    for over in _places(forwards):
        yield _TASKS, over


def _places(forwards: Forwards) -> Iterator[dict[int, int]]:
    """The outputs that lie in an input: none, then as many at once as can, until each lay in each.

    As an optimizer's step, whose outputs lie in all its variables.
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


def _worst(sample: Sample, tasks: int, found: Sequence[Array]) -> float:
    """The largest error of a kernel's outputs. Mismatch when it is more than allowed."""
    worst = 0.0
    divided = f" by {tasks} tasks," if tasks > 1 else ""
    for i, outputs in enumerate(zip(found, sample.expected, sample.references, strict=True)):
        what = f"output {i} of {sample.shapes}, {sample.draw.kind},{divided}"
        worst = max(worst, distance(what, *outputs, sample.draw))
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
    """The outputs of a kernel, which are like the arrays of `like`, by so many tasks in each loop.

    `over`: by the output that takes an input's place, that input. `alignment`: of the outputs,
    where it is more than an element's. `steps`: see `host.call`.

    Mismatch when it writes outside of them, RuntimeError when it refuses its arguments, TooLong.
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
    """Where an output begins in its room, behind guards: at an aligned address, or at none."""
    if not alignment:
        return _GUARD + 1
    return _GUARD + floats.gap(room[_GUARD:], alignment)


_ORDINARY = adversarial.Draw("", [])


def distance(
    what: str,
    kernel: Array,
    expansion: Array,
    reference: Reference,
    draw: adversarial.Draw = _ORDINARY,
) -> float:
    """The kernel's error, as a part of the row's |y|. Mismatch when it is more than allowed."""
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
    if not draw.denormal and directed.is_one_sided(kernel, exact, reference.own):
        raise Mismatch(f"{what} is always rounded to one side, not to the nearest number")
    return verdict.error


def _compare_places(
    what: str, kernel: Array, expansion: Array, reference: Reference, draw: adversarial.Draw
) -> None:
    """Mismatch unless infinities and NaNs stand where the expansion, or its reference, has them."""
    exact = floats.in_range(reference.exact, kernel.dtype)
    # Roundings decide what overflows: the expansion may do so on its way to a number, or stay below
    # the largest where the number is beyond it. Nor are TensorFlow's ops for float32 and float64 of
    # one mind of the erf of an infinity, or a softmax or a padded convolution of a NaN. The kernel
    # may agree with either.
    other = _differs(kernel, expansion, draw) & _differs(kernel, exact, draw)
    if draw.denormal or draw.special:
        other &= _differs(kernel, reference.own, draw)
    if other.any():
        other &= ~np.asarray(reference.undetermined())
    # Where numbers cancel, roundings decide on which side of zero a root reads what is left.
    if _is_left(other, (_differs(kernel, run, draw) for run in reference.nearby())):
        first = int(np.flatnonzero(other)[0])
        raise Mismatch(
            f"{what} has infinities or NaNs in other places; at [{_place(first, kernel)}] it is"
            f" {kernel.flat[first]}, and {expansion.flat[first]} is expected"
        )


def _is_left(other: Array, runs: Iterable[Array]) -> bool:
    """Whether an element differs in each of these runs, too. Takes the others out of `other`."""
    for run in runs if other.any() else ():
        other &= run
        if not other.any():
            return False
    return bool(other.any())


def _place(flat: int, array: Array) -> str:
    return ", ".join(str(int(n)) for n in np.unravel_index(flat, array.shape))


def _differs(found: Array, expected: Array, draw: adversarial.Draw) -> Array:
    """Where one is finite and the other is not, or they are not the same infinity or NaN."""
    finite = np.isfinite(expected)
    other = np.isfinite(found) != finite
    if draw.special and not draw.fed_back:  # else it may depend on the order of a sum
        kind = (np.isnan(found) != np.isnan(expected)) | (np.sign(found) != np.sign(expected))
        other |= ~finite & kind & ~(np.isnan(found) & np.isnan(expected))
    return np.asarray(other)
