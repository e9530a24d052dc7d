"""Our side and TensorFlow's compute what the description of a work says, kernel and expansion."""

from __future__ import annotations

from typing import Any

import pytest

import composite
from benchmarks.sides.bare_kernel import BareKernel
from benchmarks.sides.ours import Ours
from benchmarks.sides.tensor_flow import TensorFlow
from benchmarks.works.layers import LAYERS
from benchmarks.works.work import Work

SHAPES = {
    "dense": (3, 20, 9),
    "matmul": (17,),
    "conv 3x3": (2, 5, 6, 3, 4),
    "attention": (2, 9, 8),
}
ROWS = (5, 19)


def programs(kind: str) -> list[Any]:
    shape = SHAPES.get(kind, ROWS)
    works = [Work(kind, shape)]
    if kind != "conv 3x3":
        works.append(Work(kind, shape, depth=4, constant=True, distinct=True))
    return [work.program() for work in works]


@pytest.mark.parametrize("kind", LAYERS)
def test_the_ops_of_a_work(kind: str) -> None:
    for program in programs(kind):
        for backend in ("auto", "tf"):
            with composite.options(backend=backend):
                for settings in Ours().columns(program).values():
                    for build in settings.values():
                        way = build()
                        assert program.difference(way.result()) < 1e-5
                        assert way.note.startswith(("kernel: ", "expansion: "))


@pytest.mark.parametrize("kind", LAYERS)
def test_tensorflows_own_ops(kind: str) -> None:
    for program in programs(kind):
        settings = TensorFlow().columns(program)["TensorFlow"]
        for name in ("eager", "tf.function"):
            assert program.difference(settings[name]().result()) < 1e-5


def test_bare_kernels() -> None:
    side = BareKernel()
    for kind in ("dense", "softmax"):
        program, stack = programs(kind)
        way = side.columns(program)["bare kernel"][""]()
        assert program.difference(way.result()) < 1e-5
        with pytest.raises(ValueError, match="one layer"):
            side.columns(stack)
