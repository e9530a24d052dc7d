"""How many kernels of the examples are proven, which are not and why, and what a proof takes.

The kernels are those that `composite.lint` asks for: of each op and of its gradient, for sizes that
vary and for known ones, at several levels of CPUs, and once more with the weights as constants.
They are written up to the loops; none is compiled or run.
"""

from __future__ import annotations

import contextlib
import itertools
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import composite
from benchmarks.works.gallery import GALLERY, GalleryWork
from composite.compiler import tvm as backend

LEVELS = ("x86-64-v3", "x86-64-v4-bf16")
CORES = 2
AIM = 0.95
SLOW = 100  # milliseconds that a proof may take
EXAMPLES = ("blocks", "convnet", "digits", "lstm", "mirror_pad", "out_of_tree", "stock_ops")
_FOLDER = Path(__file__).parents[1] / "examples"


class Asked(NamedTuple):
    """A kernel that is asked for: the arguments of `backend.write`."""

    title: str
    library: Any
    shapes: Sequence[Sequence[int | str]]
    sizes: Sequence[int]

    def constants(self) -> tuple[int, ...]:
        """The inputs that may be weights: matrices and filters of known sizes."""
        return tuple(
            i
            for i, shape in enumerate(self.shapes)
            if i and len(shape) >= 2 and all(isinstance(d, int) for d in shape)
        )

    def written(self, level: str) -> Iterator[tuple[str, backend.Written]]:
        """The loops at a level, each kind with a title."""
        target = backend.Target.of(level, CORES)
        for constants in dict.fromkeys([(), self.constants()]):
            title = f"{self.title} {level}{' with constants' if constants else ''}"
            try:
                one = backend.write(
                    self.library, self.shapes, target=target, sizes=self.sizes, constants=constants
                )
            except backend.NotCovered:
                continue
            yield title, one


def asked() -> Iterator[Asked]:
    """All kernels, each once."""
    seen = set()
    for title, source, call in sources():
        write = mock.Mock()
        refused = contextlib.suppress(ValueError)  # a body whose sizes cannot vary
        with mock.patch.object(backend, "write", write), refused:
            composite.lint(source, call)
        for (library, shapes), given in write.call_args_list:
            key = (library.SerializeToString(deterministic=True), str(shapes), str(given))
            if key not in seen:
                seen.add(key)
                yield Asked(f"{title} {_text(shapes)}", library, shapes, given["sizes"])


def sources() -> Iterator[tuple[str, Any, Mapping[str, Any] | None]]:
    """What to ask for: the gallery's ops at the sizes they are timed at, the files of others."""
    for name, work in GALLERY.items():
        for dtype, varies in itertools.product(("float32", "bfloat16"), (False, True)):
            yield name, work.op(), call_of(work, dtype, varies=varies)
    for name in EXAMPLES:
        yield name, str(_FOLDER / name / "ops.py"), None


def call_of(work: GalleryWork, dtype: str, *, varies: bool) -> dict[str, Any]:
    """A stated call of a work: at its sizes, or with a first dim that varies."""
    values = work.draw(np.random.default_rng(0))
    args = work.op().schema.inputs
    batch = values[0].shape[0]

    def spec(value: Any) -> Any:
        if isinstance(value, list):
            return [spec(one) for one in value]
        array = np.asarray(value)
        own = dtype if array.dtype == np.float64 else array.dtype.name
        varying = varies and array.ndim > 1 and array.shape[0] == batch
        return (own, (("batch", *array.shape[1:]) if varying else array.shape))

    given = zip(args, values, strict=True)
    return {arg.name: spec(value) for arg, value in given} | work.attrs


def _text(shapes: Sequence[Sequence[int | str]]) -> str:
    return ", ".join("x".join(map(str, shape)) or "scalar" for shape in shapes)


def took(milliseconds: Sequence[float]) -> str:
    """Say what the proofs took."""
    slow = sum(one > SLOW for one in milliseconds) / len(milliseconds)
    return (
        f"a proof took {statistics.median(milliseconds):.0f} ms (median), "
        f"{slow:.0%} of them more than {SLOW}, the slowest {max(milliseconds):.0f}"
    )


def main() -> int:
    """Print each kernel that is not proven, and the counts; 1 where too few are."""
    proven, milliseconds = 0, []
    for one in asked():
        for level in LEVELS:
            for title, written in one.written(level):
                began = time.process_time()
                proof = written.proof
                milliseconds.append((time.process_time() - began) * 1e3)
                proven += proof.is_complete
                if not proof.is_complete:
                    print(f"{title}: {proof}")
    print(f"{proven} of {len(milliseconds)} are proven; {took(milliseconds)}")
    return 0 if proven >= AIM * len(milliseconds) else 1


if __name__ == "__main__":
    sys.exit(main())
