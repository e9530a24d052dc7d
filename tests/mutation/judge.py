"""Whether a mistake changes what a kernel computes, and which of the checks notices.

A wrong kernel may write anywhere and never end: a process of its own compiles and runs it, and
hands back what came out. TensorFlow, whose threads a forked process does not have, has been asked
for the right results before.
"""

from __future__ import annotations

import os
import pickle
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import tvm

from composite.binding import native
from composite.compiler import tvm as backend
from composite.compiler.tvm.algebra.kernel import in_ring
from composite.compiler.tvm.proof import Unproven
from composite.compiler.tvm.tir.stand_ins import StandIns
from composite.kernels import host, verify
from composite.kernels.samples import Sample, Samples
from composite.ops import functions
from composite.reference import adversarial, over_ring
from tests.mutation.kernels import TARGET, Subject
from tests.mutation.kinds import Kind
from tests.mutation.rebuilding import Places

Yields = list[tuple[int, list[np.ndarray]]]
"""How many tasks did it, and the outputs; as the numeric check takes them."""

_SECONDS = 120
_MISTAKE = "exit 1"  # a mistake of the process itself
_NAME = "kernel"


class Answer(NamedTuple):
    """What came of a call: outputs, or why there are none."""

    yields: Yields
    error: str = ""
    refused: bool = False

    def is_same(self, other: Answer) -> bool:
        """Whether nothing differs; a NaN is like any other."""
        if (self.error, self.refused, len(self.yields)) != (
            other.error,
            other.refused,
            len(other.yields),
        ):
            return False
        return all(
            tasks == others and all(map(_is_same, own, theirs))
            for (tasks, own), (others, theirs) in zip(self.yields, other.yields, strict=True)
        )


def _is_same(a: np.ndarray, b: np.ndarray) -> bool:
    if a.tobytes() == b.tobytes():
        return True
    if a.dtype.kind in "iub":
        return False
    with np.errstate(invalid="ignore"):
        both = a.astype(np.float64), b.astype(np.float64)
    return bool(np.array_equal(*both, equal_nan=True))


def _sample(inputs: Sequence[np.ndarray], like: Sequence[np.ndarray]) -> Sample:
    """Inputs, and arrays like the outputs; over the ring these are what the body gives."""
    drawn = adversarial.Draw("drawn inputs", list(inputs))
    nothing: Any = None
    return Sample([x.shape for x in inputs], drawn, list(inputs), list(like), [], nothing)


class Ran(NamedTuple):
    """What a process hands back of a kernel with a mistake."""

    what: str
    unproven: tuple[Unproven, ...] = ()
    floats: tuple[Answer, ...] = ()
    ring: tuple[Answer, ...] = ()
    stopped: str = ""


@dataclass(frozen=True)
class Outcome:
    """What came of a mistake.

    Attributes:
        what: The place, as it was and as it is.
        changes: Where a result is another one, over the ring or by more than rounding; "" if
            nowhere.
        rounding: Where a result has other bits, if that is all.
        proof: What is not proven of it.
        stopped: Why there is no kernel, or its guards end a call of the check.
        exact: Where it is not its body over the ring, on the shapes of the check.
        numeric: What the numeric check says.
    """

    what: str
    changes: str = ""
    rounding: str = ""
    proof: str = ""
    stopped: str = ""
    exact: str = ""
    numeric: str = ""

    @property
    def is_caught(self) -> bool:
        """Whether one of the checks notices."""
        return bool(self.proof or self.stopped or self.exact or self.numeric)


class Judge:
    """Of the mistakes in one kernel."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        checked, telling, beyond = subject.checked(), subject.telling(), subject.beyond()
        self._samples = list(Samples(subject.library, checked, further=telling))
        self._in_check = len(checked) + len(telling)
        self._ring = [self._over_ring(shapes) for shapes in (*checked, *telling, *beyond)]
        self._beyond = list(Samples(subject.library, (), further=beyond))
        self._floats = self._samples + self._beyond
        self._right = self._ran(Kind(), Places())
        if self._right.stopped:
            raise RuntimeError(f"the kernel without a mistake: {self._right.stopped}")
        outcome = self._outcome(self._right)
        if outcome.exact or outcome.numeric:
            raise RuntimeError(f"the kernel without a mistake: {outcome}")

    def _over_ring(self, shapes: Sequence[tuple[int, ...]]) -> Sample:
        body = functions.body(self._subject.library(shapes))
        random = np.random.default_rng(0)
        given = [over_ring.drawn(x, random) for x in self._subject.drawn(shapes, seed=0)]
        return _sample(given, over_ring.results(body, given))

    def outcome(self, kind: Kind, number: int) -> Outcome:
        """Alter the kernel at a place of a kind, and have it checked."""
        return self._outcome(self._ran(kind, Places(number)))

    def _outcome(self, ran: Ran) -> Outcome:
        known = len(self._right.unproven)
        proof = str(ran.unproven[-1]) if len(ran.unproven) > known else ""
        if ran.stopped:
            return Outcome(ran.what, changes=ran.stopped, proof=proof, stopped=ran.stopped)
        in_check, beyond = len(self._samples), self._beyond
        guards = [a.error for a in ran.floats[:in_check] if a.error and not a.refused]
        numeric = "" if guards else _numeric(self._samples, ran.floats)
        others = _numeric(beyond, ran.floats[in_check:])
        floats = _first_change(self._floats, ran.floats, self._right.floats)
        ring = _first_change(self._ring, ran.ring, self._right.ring)
        is_rounding = floats and not (ring or guards or numeric or others)
        return Outcome(
            ran.what,
            changes="" if is_rounding else ring or floats,
            rounding=floats if is_rounding else "",
            proof=proof,
            stopped=guards[0] if guards else "",
            exact=self._differs(ran.ring[: self._in_check]),
            numeric=numeric,
        )

    def _differs(self, answers: Sequence[Answer]) -> str:
        for call, answer in zip(self._ring, answers, strict=False):
            shapes = [x.shape for x in call.inputs]
            if answer.error:
                return f"of {shapes}: {answer.error}"
            for tasks, outputs in answer.yields:
                pairs = zip(outputs, call.expected, strict=True)
                if any(y.tobytes() != z.tobytes() for y, z in pairs):
                    return f"of {shapes} by {tasks} tasks"
        return ""

    def _ran(self, kind: Kind, places: Places) -> Ran:
        """Compile and run an altered kernel in a process of its own."""
        with tempfile.TemporaryDirectory() as folder:
            return _apart(partial(self._run, kind, places, Path(folder)), Path(folder))

    def _run(self, kind: Kind, places: Places, folder: Path) -> Ran:
        written = self._subject.written
        named = {n: kind.altered(f, places) for n, f in self._subject.named.items()}
        floats = {n: kind.in_floats(f, TARGET, places) for n, f in named.items()}
        kernel = _Kernel(written, floats, folder / "floats.so")
        if kernel.stopped:
            return Ran(places.what, kernel.unproven, stopped=kernel.stopped)
        answers = tuple(map(kernel.answer, self._floats))
        if kind.of_floats:
            return Ran(places.what, kernel.unproven, answers, self._right.ring)
        ring = _Kernel(written, named, folder / "ring.words", over_ring=True)
        if ring.stopped:
            return Ran(places.what, kernel.unproven, stopped=ring.stopped)
        return Ran(places.what, kernel.unproven, answers, tuple(map(ring.answer, self._ring)))


def _first_change(
    calls: Sequence[Sample], answers: Sequence[Answer], right: Sequence[Answer]
) -> str:
    for call, one, other in zip(calls, answers, right, strict=True):
        if not one.is_same(other):
            return f"of {call.shapes}: {one.error or 'another result'}"
    return ""


def _numeric(samples: Sequence[Sample], answers: Sequence[Answer]) -> str:
    """What the numeric check says of answers."""
    by_sample = dict(zip(map(id, samples), answers, strict=False))

    def results(sample: Sample) -> Yields:
        answer = by_sample[id(sample)]
        if answer.refused:
            raise host.Refused(answer.error)
        if answer.error:
            raise verify.Mismatch(answer.error)
        return answer.yields

    try:
        verify.Oracle(samples).compare(results)
    except (verify.Mismatch, host.Refused) as error:
        return str(error)
    return ""


class _Kernel:
    """A kernel of altered functions; `stopped` says why there is none."""

    def __init__(
        self,
        written: backend.Written,
        functions: dict[str, Any],
        path: Path,
        *,
        over_ring: bool = False,
    ) -> None:
        module = replace(written.module, functions=functions)
        own = replace(written, module=module)
        self._path, self._module = path, module
        self.unproven: tuple[Unproven, ...] = ()
        self._guarded = self.stopped = ""
        try:
            if over_ring:
                path.write_bytes(in_ring(module.named(_NAME), StandIns()))
                return
            self.unproven = own.proof.unproven
            kernel = own.generate(_NAME)
            self._guarded = kernel.guarded
            backend.link(kernel, path, native.library_path())
        except (backend.NotCovered, tvm.error.InternalError) as error:
            self.stopped = str(error)

    def answer(self, sample: Sample) -> Answer:
        """Run it as the numeric check does: guarded first where that is needed."""
        module = self._module
        run = partial(verify.results, self._path, _NAME, module.packed, module.forwards)
        try:
            found = [(n, [np.copy(y) for y in ys]) for n, ys in run(self._guarded, 0, sample)]
        except host.Refused as error:
            return Answer([], str(error), refused=True)
        except (verify.Mismatch, RuntimeError) as error:
            return Answer([], str(error))
        return Answer(found)


def _apart(run: Callable[[], Ran], folder: Path) -> Ran:
    """What a function returns, which a process of its own calls; or how that process ended."""
    path = folder / "ran"
    child = os.fork()
    if child == 0:
        _end_with(run, path)
    status = _awaited(child)
    if path.exists():
        ran: Ran = pickle.loads(path.read_bytes())
        return ran
    log = path.with_suffix(".log").read_text(encoding="utf-8", errors="replace")
    if status == _MISTAKE:
        raise RuntimeError(log)
    return Ran("", stopped=f"its process ended: {status}; {log[-200:]}")


def _end_with(run: Callable[[], Ran], path: Path) -> NoReturn:
    log = os.open(path.with_suffix(".log"), os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        data = pickle.dumps(run())
        path.with_suffix(".part").write_bytes(data)
        path.with_suffix(".part").rename(path)
    except BaseException:  # noqa: BLE001 - the process ends here, whatever it is
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _awaited(child: int) -> str:
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return f"signal {-code}" if code < 0 else f"exit {code}"
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"after {_SECONDS} seconds"
