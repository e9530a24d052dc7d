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
from composite.compiler import tvm as backend

pytestmark = pytest.mark.many_cases

SHAPES = {
    "dense": (3, 20, 9),
    "matmul": (17,),
    "conv 3x3": (2, 5, 6, 3, 4),
    "attention": (2, 9, 8),
    "LSTM": (2, 3, 8, 8),
    "GRU": (2, 3, 8, 8),
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
        for path in ("auto", "tf"):
            with composite.options(backend=path):
                for settings in Ours().columns(program).values():
                    for build in settings.values():
                        way = build()
                        assert program.difference(way.result()) < 1e-5
                        assert way.note.startswith(("kernel: ", "expansion: "))


@pytest.mark.parametrize("kind", LAYERS)
def test_tensorflows_own_ops(kind: str) -> None:
    for program in programs(kind):
        settings = TensorFlow().columns(program)["TensorFlow"]
        for name in settings.keys() - {"XLA", "Keras, XLA"}:
            assert program.difference(settings[name]().result()) < 1e-5


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_every_way_of_a_recurrent_layer_of_another_width(kind: str) -> None:
    program = Work(kind, (2, 3, 5, 8), constant=True).program()
    settings = TensorFlow().columns(program)["TensorFlow"]
    assert settings.keys() >= {"tf.function", "XLA", "Keras, tf.function", "Keras, XLA"}
    assert ("BlockLSTM" in settings) == (kind == "LSTM")
    for build in settings.values():
        assert program.difference(build().result()) < 1e-5


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(
    ("kind", "shape"), [("dense", (16, 40, 72)), ("softmax", ROWS), ("LSTM", (2, 3, 8, 8))]
)
def test_bare_kernels(kind: str, shape: tuple[int, ...], constant: bool) -> None:
    program = Work(kind, shape, constant=constant).program()
    way = BareKernel().columns(program)["bare kernel"][""]()
    assert program.difference(way.result()) < 1e-5


def test_a_bare_kernel_is_one_layer() -> None:
    with pytest.raises(ValueError, match="one layer"):
        BareKernel().columns(Work("softmax", ROWS, depth=2).program())


def test_a_layer_that_no_kernel_covers_has_no_column(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_(*_: object, **__: object) -> None:
        raise backend.NotCovered("no kernel")

    monkeypatch.setattr(backend, "compile", compile_)
    assert BareKernel().columns(Work("softmax", ROWS).program()) == {}
