"""Compiles a body of chains and checks the kernel as every kernel is checked before it is used."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from composite.binding import native
from composite.compiler import tvm as backend
from composite.kernels import verify
from composite.kernels.samples import Samples
from composite.reference import floats
from tests.chains.bodies import Body
from tests.compiler.tvm.conftest import library_of

_NUMBER = itertools.count()
_RUNS = 4


class Verdict(NamedTuple):
    """What became of a body, and why.

    Attributes:
        kind: "agrees", "refused" (no kernel covers it), "roundings" (they decide what a cast makes
            of a number that is nearly 1), or "differs".
        what: of any but the first.
    """

    kind: str
    what: str = ""


def run(body: Body, folder: Path, *, symbolic: bool = False) -> Verdict:
    """Compiles the body's kernel into a folder and compares it with TensorFlow's ops.

    symbolic: its first dimensions are known only when it is called.
    """
    function = body.function()
    shapes = [list(shape) for _, shape in body.inputs]
    dtypes = [tf.as_dtype(dtype) for dtype, _ in body.inputs]

    def expansion(dims: Sequence[Sequence[Any]]) -> Any:
        known = [[d if isinstance(d, int) else None for d in shape] for shape in dims]
        return library_of(function, [tf.TensorSpec(*s) for s in zip(known, dtypes, strict=True)])

    cases = [[tuple(shape) for shape in shapes]]
    classes: list[list[int | str]] = [list(shape) for shape in shapes]
    if symbolic:
        first = max((shape[0] for shape in shapes if shape), default=1)
        if first < 2:  # a broadcast, or nothing to compute
            return Verdict("refused", "no dimension to leave open")
        classes = [["s0", *s[1:]] if s and s[0] == first else list(s) for s in shapes]
        cases.append([tuple(9 if isinstance(d, str) else d for d in s) for s in classes])
    name = f"chain_{next(_NUMBER)}"
    try:
        library = expansion(classes)
    except (ValueError, TypeError, LookupError, tf.errors.OpError) as error:
        return Verdict("refused", str(error))  # a graph, or one of open sizes, cannot have a line
    try:
        kernel = backend.write(library, classes).generate(name)
    except backend.NotCovered as answer:
        return Verdict("refused", str(answer))
    except Exception as error:  # noqa: BLE001 - a crash of the compiler is a finding
        return Verdict("differs", f"{type(error).__name__}: {error}")
    path = folder / f"{name}.so"
    backend.link(kernel, path, runtime=str(native.library_path().resolve()))
    samples = Samples(expansion, cases)
    try:
        verify.Oracle(samples).check(path, name, kernel.packed, kernel.forwards, kernel.guarded)
    except (verify.Mismatch, RuntimeError) as error:
        is_rounding = "differs in" in str(error) and _is_decided_by_roundings(samples)
        return Verdict("roundings" if is_rounding else "differs", str(error))
    except (ValueError, TypeError, tf.errors.OpError) as error:
        if not symbolic:
            raise
        return Verdict("refused", str(error))  # a line is of these sizes alone
    finally:
        path.unlink()
    return Verdict("agrees")


def _is_decided_by_roundings(samples: Samples) -> bool:
    """Whether integers or truths are others where results are a rounding error up or down."""
    for sample in samples:
        for seed in range(_RUNS):
            pairs = zip(sample.source.rounded(sample.inputs, seed), sample.expected, strict=True)
            if any(not floats.is_floating(x) and (x != y).any() for x, y in pairs):
                return True
    return False
