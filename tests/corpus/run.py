"""Runs a body in Python and as an op: expansion, gradients, kernels, gradients by kernels.

A kernel that is refused by its check costs nobody a right result; it is reported where asked. A
compiler that raises is a finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from composite.binding import settings
from composite.checking import gradients
from composite.checking.compare import Closeness, Difference
from composite.checking.kernels import refusal
from composite.checking.oracle import Case, outcome
from composite.checking.sample import Sample
from composite.checking.skipped import Skipped
from composite.checking.ways import WAYS
from tests.corpus.bodies import Body

BASIC = ("eager", "unknown dims", "gradient", "second gradient")
KERNELS = ("kernel", "gradient by kernels")

# A kernel that was refused since it is wrong, and one that there is not by a mistake of the
# compiler's: neither since an op has none.
_WRONG = re.compile(r"failed its check")
CRASHED = re.compile(r"compiling failed")

# A gradient that TensorFlow has not, of the ops of its own function.
_PYTHON_ALONE = re.compile("the gradient of the Python function raises")


class Finding(NamedTuple):
    """How a body differs in one way."""

    way: str
    what: str


def run(
    body: Body, ways: Sequence[str], counts: dict[str, int], *, with_refused: bool = False
) -> Iterator[Finding]:
    """What differs; adds to `counts` the ways that compared something.

    with_refused: also kernels that failed their check.
    """
    try:
        op = body.op()
    except Exception as error:  # noqa: BLE001 - the language may refuse it, the compiler not crash
        counts["refused"] = counts.get("refused", 0) + 1
        if not isinstance(error, SyntaxError):
            yield Finding("decoration", f"{type(error).__name__}: {error}")
        return
    case = Case(op, Sample(body.inputs, {}, body.label))
    for way in ways:
        try:
            _by_kernels(case) if way == "gradient by kernels" else WAYS[way](case)
        except Skipped as reason:
            if CRASHED.search(str(reason)):
                yield Finding(way, str(reason))
            elif _WRONG.search(str(reason)):
                counts["kernels that failed"] = counts.get("kernels that failed", 0) + 1
                if with_refused:
                    yield Finding(way, str(reason))
        except Difference as difference:
            if not _PYTHON_ALONE.match(str(difference)):
                yield Finding(way, str(difference))
        else:
            counts[way] = counts.get(way, 0) + 1


def _by_kernels(case: Case) -> Closeness:
    gradients.require_floats(case)
    with settings.options(backend="tvm"):
        found = outcome(lambda: gradients.traced(case))
    if found.error is not None and (why := refusal(found.error)):
        raise Skipped(f"no kernel: {why}")
    return gradients.agree(case, found)
