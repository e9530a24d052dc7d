"""A function with regions beside itself without them: the same results, and which is faster."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from composite.acceleration import graph, still
from composite.acceleration.direct import DirectCalls
from composite.acceleration.report import LEAST_GAIN, AccelerationReport, Compiled
from composite.acceleration.timing import times
from composite.acceleration.tracing import Known, traced
from composite.binding import settings
from composite.binding.log import logger
from composite.compiler import account
from composite.counters import stats
from composite.jit import worker
from composite.ops.op import CompositeOp
from composite.progress import activity
from composite.trials.results import Array, Deviation, deviation, flat

if TYPE_CHECKING:
    from composite.acceleration.recognized import Recognizing

# The runtime knows functions that get regions by their names (composite/runtime/regions).
MARK = "composite_accelerated_"
_LONGEST = 300  # characters of XLA's error that a report has
# Calls in which nodes ask for their kernels: where variables are waited for, also for those that
# have variables at rest for constants (composite/runtime/run/kernel_view.h).
_WARM, _WARM_AT_REST = 20, 3
_ANY_TIME = 7 * 24 * 3600  # seconds that XLA waits for kernels
_MOST_ROUNDS = 8  # of such calls, until no node asks for more


@dataclass(frozen=True)
class Terms:
    """On what terms a function is accelerated; see the arguments of `composite.accelerate`."""

    deny: tuple[str, ...] = ()  # entries as composite/runtime/regions/selection.h has them
    rtol: float | None = None
    timeout: float | None = None
    min_gain: float = LEAST_GAIN
    xla: bool = False
    batches: tuple[int, ...] = ()
    at_rest: bool = False  # kernels are for variables that nobody writes to, and for no others

    @property
    def calls(self) -> int:
        """In how many calls nodes ask for all of their kernels."""
        return _WARM_AT_REST if self.at_rest else _WARM

    def end(self) -> float | None:
        """When to stop waiting for kernels, by the monotonic clock."""
        return None if self.timeout is None else time.monotonic() + self.timeout


def mark(deny: Sequence[str]) -> str:
    """What begins the name of a function that gets regions without what these entries name."""
    return MARK + (f"without.{'.'.join(map(_escaped, deny))}.." if deny else "")


def _escaped(entry: str) -> str:
    """An entry as a part of a function's name, see composite/runtime/regions/selection.h."""
    return re.sub(rb"\W", lambda found: b"-%02X" % ord(found[0]), entry.encode()).decode()


class Accelerated(DirectCalls):
    """A function with regions; calling it calls whichever was measured to be faster.

    Made by `composite.accelerate`.

    Attributes:
        report: what was found, compared and measured.
        function: the tf.function that is called: with regions, by XLA, or the original's.
    """

    report: AccelerationReport


class AcceleratedByBatch(Accelerated):
    """The same where several sizes of a batch were measured: each is called its own way."""

    def __init__(self, function: Any) -> None:
        """`function` serves the sizes that were not measured."""
        super().__init__(function)
        self._at: dict[int, Accelerated] = {}

    def serve(self, batch: int, way: Accelerated) -> None:
        """Has this way serve calls whose first input is so long."""
        self._at[batch] = way

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the way that was the fastest at this size."""
        way = self._at.get(batch_of(args))
        return super().__call__(*args, **kwargs) if way is None else way(*args, **kwargs)


def batch_of(given: Sequence[Any]) -> int:
    """The first dim of the first input; -1 where it has none."""
    shape: Any = getattr(next(iter(tf.nest.flatten(given)), None), "shape", ())
    return -1 if len(shape) == 0 or shape[0] is None else int(shape[0])


def at_batch(given: Sequence[Any], batch: int) -> list[Any]:
    """The same inputs, repeated or cut to another size of their first dim. ValueError without one.

    Inputs that have another first dim stay as they are.
    """
    before = batch_of(given)
    if before < 1 or batch < 1:
        raise ValueError(
            f"batches={batch}: the first input has no such dim, or the size is not above 0"
        )

    def resized(one: Any) -> Any:
        if len(getattr(one, "shape", ())) == 0 or one.shape[0] != before:
            return one
        return tf.gather(one, tf.range(batch) % before)

    return [tf.nest.map_structure(resized, one) for one in given]


def compared(
    call: Callable[..., Any],
    name: str,
    given: Sequence[Any],
    terms: Terms,
    ops: Sequence[CompositeOp] | None = (),
) -> Accelerated:
    """Runs a function on these inputs without and with regions, and says how long that took.

    `name` is what the report calls it; `ops` are recognized in it before regions are formed, None
    for those of the process.
    """
    presumed = settings.resting_variables() if terms.at_rest else contextlib.nullcontext()
    with account.collected() as steps, presumed:
        made = _compared(call, name, given, terms, ops)
    made.report = replace(made.report, steps=steps.read())
    logger.info("%s: accelerated in %s", name, made.report.steps)
    return made


def _compared(
    call: Callable[..., Any],
    name: str,
    given: Sequence[Any],
    terms: Terms,
    ops: Sequence[CompositeOp] | None,
) -> Accelerated:
    activity.step("trace")
    word = word_of(name)
    worker.start_for_regions()
    original, wanted = without_regions(call, word, given)
    known = Known(original.function.get_concrete_function(*given))
    recognizing = _recognizing(call, ops)
    regions, partition, is_complete = formed(
        recognizing or call, word, given, terms.deny, terms.end(),
        calls=terms.calls, original=call, known=None if recognizing else known,
    )  # fmt: skip
    activity.step("compare")
    before = stats()
    with account.step("compare"):
        found = flat(regions(*given))
        calls = (stats() - before).by_region
        moved = _moved((original, regions), given, (wanted, found), terms.rtol)
    report = AccelerationReport(
        name=name,
        inputs=_described(given),
        partition=partition,
        deviation=moved,
        is_complete=is_complete,
        min_gain=terms.min_gain,
        calls=calls,
        recognition=None if recognizing is None else recognizing.report(*given),
        original_us=0.0,
        accelerated_us=0.0,
    )
    ways = _Ways(original, regions)
    if terms.xla:
        with settings.options(regions=False):
            compiled = _for_xla(call, f"compiled_{word}", known)
            by_xla = _by_xla(original, compiled, given, terms)
        report = replace(report, xla=by_xla)
        ways = ways if by_xla.refusal else ways._replace(compiled=compiled)
    if ways.compiled is not None:
        calling = _for_xla(call, f"{mark(terms.deny)}xla_{word}", known)
        with settings.options(xla=_ANY_TIME if terms.timeout is None else terms.timeout):
            with_kernels = _by_xla(original, calling, given, terms)
        if with_kernels.kernels > by_xla.kernels:
            report = replace(report, xla_kernels=with_kernels)
            ways = ways if with_kernels.refusal else ways._replace(calling=calling)
    return _fastest(ways, given, _timed(ways, given, report, terms), terms)


def _for_xla(call: Callable[..., Any], name: str, known: Known) -> Accelerated:
    """A function that XLA compiles; it gets regions if its name is marked."""
    return Accelerated(traced(call, name, jit_compile=True, known=known), call)


def _recognizing(call: Callable[..., Any], ops: Sequence[CompositeOp] | None) -> Recognizing | None:
    """The function with ops recognized in it; None if none are looked for."""
    if ops is not None and not ops:
        return None
    from composite.acceleration.recognized import Recognizing

    return Recognizing(call, ops)


class _Ways(NamedTuple):
    """The ways to run a function that are compared."""

    original: Accelerated
    regions: Accelerated
    compiled: Accelerated | None = None  # by XLA
    calling: Accelerated | None = None  # the same, with regions, some of which call kernels

    @property
    def all(self) -> list[Accelerated]:
        """Those that there are."""
        return [way for way in self if way is not None]

    def best(self, report: AccelerationReport) -> Accelerated:
        """The one that is called."""
        by_xla = self.calling if report.are_xla_kernels_best else self.compiled
        if report.is_xla_best and by_xla is not None:
            return by_xla
        return self.regions if report.is_gain else self.original


def _timed(
    ways: _Ways, given: Sequence[Any], report: AccelerationReport, terms: Terms
) -> AccelerationReport:
    """The report with how long a call of each way takes."""
    original, regions, *by_xla = (1e6 * one for one in times(ways.all, given, terms.min_gain))
    report = replace(report, original_us=original, accelerated_us=regions)
    if by_xla and report.xla is not None:
        report = replace(report, xla=replace(report.xla, microseconds=by_xla[0]))
    if by_xla[1:] and report.xla_kernels is not None:
        timed = replace(report.xla_kernels, microseconds=by_xla[1])
        report = replace(report, xla_kernels=timed)
    return report


def _fastest(
    ways: _Ways, given: Sequence[Any], report: AccelerationReport, terms: Terms
) -> Accelerated:
    """What calls the fastest way, at each of the batches that are asked for."""
    chosen = ways.best(report)
    if not terms.batches:
        chosen.report = report
        return chosen
    by_batch = AcceleratedByBatch(chosen.function)
    found_at = {batch: _at(batch, ways, given, report, terms) for batch in terms.batches}
    for batch, one in {batch_of(given): report, **found_at}.items():
        by_batch.serve(batch, ways.best(one))
    by_batch.report = replace(report, batches=found_at)
    for way in ways.all:
        way.report = by_batch.report
    return by_batch


def _at(
    batch: int, ways: _Ways, given: Sequence[Any], report: AccelerationReport, terms: Terms
) -> AccelerationReport:
    """The report of a call with another batch."""
    inputs = at_batch(given, batch)
    is_complete = settled(ways.regions, inputs, terms.end(), calls=terms.calls)
    wanted, *found = [flat(way(*inputs)) for way in ways.all]
    moved, *by_xla = [
        _moved((ways.original, way), inputs, (wanted, one), terms.rtol)
        for way, one in zip(ways.all[1:], found, strict=True)
    ]
    xla, with_kernels = report.xla, report.xla_kernels
    if by_xla and xla is not None:
        xla = replace(xla, deviation=by_xla[0])
    if by_xla[1:] and with_kernels is not None:
        with_kernels = replace(with_kernels, deviation=by_xla[1])
    own = replace(
        report, deviation=moved, is_complete=is_complete, xla=xla, xla_kernels=with_kernels
    )
    return _timed(ways, inputs, own, terms)


def _by_xla(
    original: Accelerated, compiled: Accelerated, given: Sequence[Any], terms: Terms
) -> Compiled:
    """How close the results of a function are that XLA compiles, or why it does not."""
    wanted = flat(original(*given))
    before = stats()
    try:
        found = flat(compiled(*given))
    except (tf.errors.OpError, ValueError, TypeError) as error:
        return Compiled(refusal=in_one_line(error)[:_LONGEST])
    kernels = (stats() - before)["xla_kernel_nodes"]
    moved = _moved((original, compiled), given, (wanted, found), terms.rtol)
    return Compiled(deviation=moved, kernels=kernels)


def _moved(
    ways: tuple[Accelerated, Accelerated],
    given: Sequence[Any],
    results: tuple[Sequence[Array], Sequence[Array]],
    rtol: float | None,
) -> Deviation:
    """How far the second of two ways' results are from the first's, on the same variables."""
    wanted, found = results
    original, other = (way.function for way in ways)
    return still.moved(original, other, given, rtol, deviation(found, wanted, rtol))


def in_one_line(error: Exception) -> str:
    """What an error says, for a report."""
    return " ".join(str(getattr(error, "message", error)).split())


def _described(given: Sequence[Any]) -> str:
    """Dtypes and shapes of inputs, as text."""
    arrays = [x for x in tf.nest.flatten(given) if hasattr(x, "shape") and hasattr(x, "dtype")]
    return ", ".join(f"{tf.as_dtype(x.dtype).name}{list(x.shape)}" for x in arrays)


def word_of(name: str) -> str:
    """A name as a part of the runtime's."""
    return re.sub(r"\W", "_", name)


def without_regions(
    call: Callable[..., Any], word: str, given: Sequence[Any]
) -> tuple[Accelerated, list[Array]]:
    """A function without regions, and its outputs."""
    original = Accelerated(traced(call, f"original_{word}"), call)
    with settings.options(regions=False):
        with account.step("trace"):
            original.function.get_concrete_function(*given)
            original.learn(*given)
        with account.step("compare"):
            return original, flat(original(*given))


def formed(  # noqa: PLR0913 - a call, and how kernels are asked for
    call: Callable[..., Any],
    word: str,
    given: Sequence[Any],
    deny: Sequence[str],
    end: float | None,
    *,
    calls: int = _WARM,
    original: Callable[..., Any] | None = None,
    known: Known | None = None,
) -> tuple[Accelerated, graph.Partition, bool]:
    """A function with regions, these, and whether their kernels were ready at a monotonic time.

    A node that turns out to have no kernel is left outside of the next trace's regions. `word` is
    what tells the function's name in the runtime from others. `original`: see DirectCalls. `known`:
    see `traced`.
    """
    while True:
        regions = Accelerated(traced(call, mark(deny) + word, known=known), original or call)
        with account.step("trace"):
            concrete = regions.function.get_concrete_function(*given)
            regions.learn(*given)
        found = graph.partition(concrete, deny)
        is_complete = settled(regions, given, end, calls=calls)
        if graph.partition(concrete, deny) == found:
            return regions, found, is_complete


def settled(
    function: Callable[..., Any], given: Sequence[Any], end: float | None, *, calls: int = _WARM
) -> bool:
    """Calls a function until its nodes ask for no more kernels; whether all were ready in time.

    They have asked for all that they know of after so many `calls`.
    """
    for _ in range(_MOST_ROUNDS):
        before = stats()["requests"]
        # A refused node is left out of the next trace.
        with account.step("warm up"), settings.options(backend="auto"):
            for _ in range(calls):
                function(*given)
        with account.step("wait"):
            if not worker.wait(None if end is None else max(end - time.monotonic(), 0.0)):
                return False
        if stats()["requests"] == before:
            break
    return True
