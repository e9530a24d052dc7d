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
from tests.chains.bodies import Body
from tests.compiler.tvm.conftest import library_of

_NUMBER = itertools.count()


class Verdict(NamedTuple):
    """What became of a body: "agrees", "refused" (no kernel covers it) or "differs", and why."""

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
        cases.append([tuple(9 if d == "s0" else d for d in s) for s in classes])
    name = f"chain_{next(_NUMBER)}"
    try:
        kernel = backend.write(expansion(classes), classes).generate(name)
    except backend.NotCovered as answer:
        return Verdict("refused", str(answer))
    except (ValueError, TypeError, LookupError, tf.errors.OpError) as error:
        return Verdict("refused", str(error))  # a graph, or one of open sizes, cannot have a line
    except Exception as error:  # noqa: BLE001 - a crash of the compiler is a finding
        return Verdict("differs", f"{type(error).__name__}: {error}")
    path = folder / f"{name}.so"
    backend.link(kernel, path, runtime=str(native.library_path().resolve()))
    try:
        oracle = verify.Oracle(Samples(expansion, cases))
        oracle.check(path, name, kernel.packed, kernel.forwards, kernel.guarded)
    except (verify.Mismatch, RuntimeError) as error:
        return Verdict("differs", str(error))
    except (ValueError, TypeError, tf.errors.OpError) as error:
        if not symbolic:
            raise
        return Verdict("refused", str(error))  # a line is of these sizes alone
    finally:
        path.unlink()
    return Verdict("agrees")
