"""`composite.check`: does an op do what its Python function does, however it is run?

For each sample, a call of the op, every way of running it (`ways.WAYS`) is compared with
`op.python_function` run eagerly. Samples are the call that is given with variations of it, or drawn
from the declaration.

Not for: speed (benchmarks/), programs of the language in general (tests/fuzz).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from composite.checking import reproduction
from composite.checking.report import CheckError, DifferenceFound, Report
from composite.checking.run import Run
from composite.checking.sample import Sample, declared
from composite.checking.samples import given
from composite.checking.ways import WAYS
from composite.ops.op import CompositeOp, DecoratedOp
from composite.progress import activity
from composite.progress.event import Listener

__all__ = ["CheckError", "Report", "check"]

REPORTS = ".composite"
_SAMPLES = 30


def check(  # noqa: PLR0913 - all but the call itself have defaults
    op: CompositeOp,
    *inputs: Any,
    seed: int = 0,
    samples: int | None = None,
    ways: Sequence[str] | None = None,
    report_dir: str | Path = REPORTS,
    raise_on_failure: bool = True,
    progress: Listener | None = None,
    **attrs: Any,
) -> Report:
    """Compares every way of running an op with its Python function run eagerly.

    Args:
        op: an op that `@Composite` made; an op of a loaded library has no Python function.
        inputs: the inputs of a call, with any shapes and dtypes that the declaration allows. For a
            resource, give a variable, or an array of what it holds: each run has a new one, whose
            content after the call is compared as well.
            Without inputs, calls are drawn, including the attributes that are not given (this
            requires hypothesis).
        seed: the seed for drawing. The same seed draws the same samples.
        samples: the number of calls. With inputs, these are the call itself and then its variations
            (other dtypes, NaN, infinities, denormals, empty, 0-d), by default all of them. Without
            inputs, the default is 30.
        ways: the names of the ways to try, as in the report; by default all.
        report_dir: the folder below which a difference is saved, as inputs and a script.
        raise_on_failure: if False, a failure is returned in the report instead of raised.
        progress: is called with ProgressEvents, a part for each call; a step is a way. Without it,
            standard error shows them if it is a terminal.
        attrs: attributes of the calls.

    Returns:
        A Report; `print` it.

    Raises:
        CheckError: at the first difference. If both sides raise an error, they agree; if they do in
            every call, no result was compared, and that is a failure too.
        TypeError, ValueError: if the op or the arguments cannot be checked.
        ImportError: if inputs must be drawn and hypothesis is not installed.
    """
    if not isinstance(op, DecoratedOp):
        raise TypeError(f"composite.check takes an op that @Composite made, not {op!r}")
    known = declared(op.schema, attrs)
    run = Run(op, _chosen(ways))
    with activity.told(f"check {op.__name__}", progress):
        if inputs:
            run.given(_calls(op, inputs, known)[:samples])
        else:
            run.drawn(known, _SAMPLES if samples is None else samples, seed)
    report, failure = run.report, run.failure
    if failure is not None:
        folder = reproduction.save(op, failure.way, failure.sample, Path(report_dir))
        report.row(failure.way).differs = True
        report.difference = DifferenceFound(
            op.op_name, op.place, failure.way, failure.sample.describe(), failure.what, folder
        )
    if raise_on_failure and not report.ok:
        raise CheckError(report)
    return report


def _chosen(ways: Sequence[str] | None) -> Sequence[str]:
    if isinstance(ways, str):
        raise TypeError(f"composite.check: ways is a list of names, [{ways!r}]")
    for way in ways or ():
        if way not in WAYS:
            names = ", ".join(map(repr, WAYS))
            raise ValueError(f"composite.check: {way!r} is no way to run an op; there are {names}")
    return list(WAYS) if ways is None else ways


def _calls(
    op: DecoratedOp, inputs: Sequence[Any], attrs: Mapping[str, Any]
) -> Sequence[Callable[[], Sample]]:
    schema = op.schema
    if len(inputs) != len(schema.inputs):
        names = ", ".join(arg.name for arg in schema.inputs)
        raise TypeError(
            f"{schema.op_name} takes {len(schema.inputs)} inputs ({names}), and {len(inputs)} are "
            "given; give all or none"
        )
    values = dict(attrs)
    for spec in schema.attrs:
        if spec.name not in values:
            if not spec.has_default:
                raise TypeError(
                    f"{schema.op_name}: attribute {spec.name!r} has no default: give it"
                )
            values[spec.name] = spec.default
    return given(op, inputs, values)
