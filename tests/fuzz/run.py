"""Runs a random program in Python and in the ways that composite.check knows.

Both agree, both raise, or the compiler refuses the program: anything else is a difference.
"""

from __future__ import annotations

import dataclasses
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf

from composite.checking.compare import Difference
from composite.checking.oracle import Case
from composite.checking.sample import Sample
from composite.checking.skipped import Skipped
from composite.checking.ways import WAYS
from composite.compiler.source import CompositeSyntaxError
from tests.fuzz import division, lazy, paths
from tests.fuzz.program import Program

BASIC = ("eager", "unknown dims")
_LIMIT = 10.0  # seconds that a program may take; most take less than one

# Known numbers are 64 bits wide, and none is complex: docs of the errors, fold.h. What a tensor
# decides is a tensor, or the same on all paths: join.h. A dim that follows from values has to wait
# for ever where it must be known.
_DOCUMENTED = re.compile(
    r"integer overflow|does not fit 64 bits|complex number|is too long|2\*\*63"
    r"|known only when the op runs|known, even when the op runs|known when the op runs"
    r"|a tensor decides|would change a list in place"
)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of a program.

    Attributes:
        kind: "agrees", "raises" (everywhere, in each sample), "refused", "limit" (a documented
            one), "endless" (a loop over a list that it makes longer), "dead error" (Python alone
            computes what nothing needs), "other path" (expansion refuses a path that a tensor
            decides, and Python raises on it too), or "differs".
        way, what: of a difference or a refusal.
        skipped: why ways compared nothing.
    """

    kind: str
    way: str = ""
    what: str = ""
    skipped: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """What the verdict is about, without names and numbers: equal ones have one cause."""
        text = re.sub(r"<fuzz[^>]*>:\d+:\d+|\{\{.*?\}\}|Fuzz\d+V\d+|\d[\d.e+-]*", "#", self.what)
        return f"{self.way}: " + re.sub(r"`[^`]*`|\[[^\]]*\]|'[^']*'", "_", text)[:160]


def leave_graphs_alone() -> None:
    """Turns off grappler in this process: it drops reshapes that would raise, and reorders sums."""
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


def run(
    program: Program, ways: Sequence[str] = BASIC, version: int = 0, samples: int = 2
) -> Verdict:
    """Defines a program's op and compares it on one sample, by its seed's parity, or on two."""
    try:
        op = program.define(version)
    except CompositeSyntaxError as error:
        return Verdict("refused", "decoration", str(error.msg))
    except Exception as error:  # noqa: BLE001 - a crash of the compiler is a finding
        return Verdict("differs", "decoration", f"{type(error).__name__}: {error}")
    try:
        with _time_limit():
            return _compared(program, op, ways, version, samples)
    except _Endless:
        return Verdict("endless")


class _Endless(BaseException):  # no error of a program's, which `except Exception` would take
    pass


@contextmanager
def _time_limit() -> Iterator[None]:
    """_Endless after a while, where Python runs: an op that does not return is a finding."""

    def stop(*_: object) -> None:
        raise _Endless

    before = signal.signal(signal.SIGALRM, stop)
    # And again: Python drops what is raised where it collects garbage.
    signal.setitimer(signal.ITIMER_REAL, _LIMIT, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _compared(
    program: Program, op: Any, ways: Sequence[str], version: int, samples: int
) -> Verdict:
    raised, skipped = 0, []
    for sample in _samples(program.seed, samples):
        case = Case(op, sample, _with_own_lists(op.python_function))
        raised += case.expected.error is not None
        for way in ways:
            try:
                WAYS[way](case)
            except Skipped as reason:
                skipped.append(f"{way}: {reason}")
            except Difference as difference:
                if case.expected.error is not None and _agrees_lazily(program, op, sample, way):
                    return Verdict("dead error", way, str(case.expected.told))
                told = f"{difference} [{sample.label}]"
                if _DOCUMENTED.search(told) or division.agrees(program, version, case, way):
                    return Verdict("limit", way, told)
                if case.expected.error is None and paths.raises_on_one(
                    program, version, op, sample
                ):
                    return Verdict("other path", way, told)
                return Verdict("differs", way, told)
    return Verdict("raises" if raised == samples else "agrees", skipped=tuple(skipped))


def _with_own_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with lists of its own: in Python, `+=` changes a list that the caller gave."""

    def body(xs: Any, *inputs: Any, **attrs: Any) -> Any:
        own = {name: list(x) if isinstance(x, list) else x for name, x in attrs.items()}
        return function(list(xs), *inputs, **own)

    return body


def _agrees_lazily(program: Program, op: Any, sample: Sample, way: str) -> bool:
    """Whether Python raises in an expression alone whose value nothing needs."""
    for decision in (False, True):
        case = Case(op, sample, lazy.python_function(program, decision))
        try:
            WAYS[way](case)
        except (Difference, Skipped):
            return False
        if case.expected.error is not None:
            return False
    return True


def _samples(seed: int, wanted: int) -> list[Sample]:
    """Calls in float32 and in float64, with other attributes and lists; one of them, or both."""
    random = np.random.default_rng(seed)
    samples = []
    for dtype, count in ((np.float32, 3), (np.float64, 2)):
        y = random.choice([0, 0, 1, 2])
        shapes = [[4, 3]] * count, [4, 3], ([4, 3], [3], [1, 3])[y]
        xs, x, other = (
            [random.standard_normal(s).astype(dtype) for s in shapes[0]],
            random.standard_normal(shapes[1]).astype(dtype),
            random.standard_normal(shapes[2]).astype(dtype),
        )
        n = random.integers(-3, 5, [4, 3]).astype(np.int32)
        p = random.integers(0, 2, [4, 3]).astype(bool)
        attrs = {
            "k": int(random.integers(-2, 5)),
            "r": float(random.choice([0.5, -1.25, 2.0, 0.0])),
            "flag": bool(random.integers(0, 2)),
            "s": str(random.choice(["", "a", "é", "abc"])),
            "d": tf.as_dtype(dtype),
            "ks": [int(one) for one in random.integers(-2, 4, random.integers(0, 4))],
        }
        samples.append(Sample((xs, x, other, n, p), attrs, np.dtype(dtype).name))
    return samples if wanted > 1 else [samples[seed % 2]]
