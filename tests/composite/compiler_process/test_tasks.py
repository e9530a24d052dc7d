"""Tasks and answers are the same on both sides."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from composite.compiler.tvm import Kernel, Knob, LinkError, NotCovered
from composite.compiler.tvm.ir.constants import Packed
from composite.compiler.tvm.proof import Proof, Unproven
from composite.compiler_process import messages, tasks
from composite.compiler_process.messages import Message
from composite.compiler_process.tasks import CompilerError, Loops, Made, Task

LOOPS = Loops("digest", (Knob("0.rows.block", (1, 2, "all"), 2),), {"0.rows.block": 1})


def _sent(message: Message) -> Message:
    received = messages.decoded(message.encoded())
    assert received is not None
    return received


def test_a_task(task: Callable[..., Task]) -> None:
    choices = {"0.x": 3, "0.y": "b"}
    asked = task(name="k", runtime="/runtime.so", choices=choices, sizes=(1,), constants=(0,))
    found = Task.of(_sent(asked.message()))
    assert [found.sizes, found.constants] == [[1], [0]]
    own = dataclasses.replace(found, in_shapes=asked.in_shapes, sizes=(1,), constants=(0,))
    assert own == asked
    assert found.link
    assert [list(shape) for shape in asked.in_shapes] == found.in_shapes


def test_answers(task: Callable[..., Task]) -> None:
    asked = task()
    assert tasks.answered(asked, _sent(Made(LOOPS).message())) == Made(LOOPS)
    kernel = Kernel(
        name="k",
        objects={"k.o": b"one", "l.o": b""},
        out_shapes=["s0 2 *,3"],
        minimums=[4],
        divisors=[1],
        strategy="rows+rows",
        proof=Proof(7, 1, (Unproven("kernel", "out0", "i", "may be 8"),), ("in0",)),
        target=asked.target,
        packed=(Packed(1, 640, "float32"),),
        choices={"0.rows.block": 1},
    )
    assert tasks.answered(asked, _sent(Made(LOOPS, kernel).message())) == Made(LOOPS, kernel)
    unknown = dataclasses.replace(kernel, proof=Proof(0, 0, ()))
    assert tasks.answered(asked, _sent(Made(LOOPS, unknown).message())) == Made(LOOPS, unknown)
    asked = dataclasses.replace(asked, link=True)
    whole = Made(LOOPS, kernel, b"library")
    assert tasks.answered(asked, _sent(whole.message())) == whole


@pytest.mark.parametrize("kind", [NotCovered, LinkError])
def test_answers_that_are_no_failures_of_the_compiler(
    task: Callable[..., Task], kind: type[Exception]
) -> None:
    answer = tasks.failed(kind("ops.py:3:4: Pow: no"), "trace")
    with pytest.raises(kind, match="^ops.py:3:4: Pow: no$"):
        tasks.answered(task(), _sent(answer))


def test_an_answer_asks_for_values_of_inputs(task: Callable[..., Task]) -> None:
    refused = NotCovered("Fill: its shape is computed at run time", sizes=[2, 5], node="n3")
    answer = tasks.failed(refused, "")
    with pytest.raises(NotCovered) as raised:
        tasks.answered(task(), _sent(answer))
    assert (raised.value.sizes, raised.value.node) == ((2, 5), "n3")


def test_what_the_compiler_should_not_raise(task: Callable[..., Task]) -> None:
    answer = tasks.failed(ValueError("zip:\n  too\n  short"), "line 1\nline 2")
    with pytest.raises(CompilerError, match="^ValueError: zip: too short$") as raised:
        tasks.answered(task(), _sent(answer))
    assert raised.value.trace == "line 1\nline 2"
