"""What a kernel's key depends on, and what it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import tensorflow as tf

from composite.aot import stated_calls
from composite.binding.kernel_request import KernelRequest
from composite.binding.records import attr_value
from composite.kernels import key, produce, toolchain
from composite.kernels.key import Identity
from tests.composite.dense_ops import dense
from tests.composite.ops.test_function_digest import parsed

BASE = KernelRequest(
    op="Op",
    attrs={"act": attr_value("RELU"), "T": attr_value(tf.float32)},
    program="abc",
    in_shapes=(("s0", 3),),
)
TARGET = "x86-64-v3-2"


def entry(
    request: KernelRequest = BASE, expansion: Any = None, target: str = TARGET, **choices: Any
) -> str:
    found = Identity.of(request, parsed() if expansion is None else expansion)
    return found.entry_key(target, choices)


@pytest.mark.parametrize(
    "other",
    [
        replace(BASE, op="Other"),
        replace(BASE, attrs={**BASE.attrs, "act": attr_value("TANH")}),
        replace(BASE, attrs={**BASE.attrs, "T": attr_value(tf.float64)}),
        replace(BASE, in_shapes=(("s0", 4),)),
        replace(BASE, in_shapes=(("s0", "s0"),)),
        replace(BASE, constants=(0,)),
    ],
)
def test_the_call_is_in_both_keys(other: KernelRequest) -> None:
    assert entry(other) != entry()
    ours, theirs = (Identity.of(one, parsed()) for one in (BASE, other))
    assert ours.tuning_key(TARGET) != theirs.tuning_key(TARGET)


def test_the_expansion_is_in_both_keys() -> None:
    half = parsed(("DT_FLOAT } } }\n  ret", "DT_HALF } } }\n  ret"))
    assert entry(expansion=half) != entry()
    ours, theirs = (Identity.of(BASE, one) for one in (parsed(), half))
    assert ours.tuning_key(TARGET) != theirs.tuning_key(TARGET)


def test_target_and_choices_are_in_it() -> None:
    assert len({entry(), entry(target="x86-64-v4-2"), entry(tile=4), entry(tile=8)}) == 4


def test_who_asks_and_the_version_of_the_op_are_not() -> None:
    asked = replace(BASE, name="ticket 7", must=True, hint=(3,), program="abd")
    assert entry(asked) == entry()
    placed = parsed()
    placed.function[0].node_def[0].experimental_debug_info.original_node_names.append("ops.py:1")
    assert entry(expansion=placed) == entry()


def test_another_compiler_is_another_key_and_not_another_tuning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, tuned = entry(), Identity.of(BASE, parsed()).tuning_key(TARGET)
    monkeypatch.setattr(toolchain, "toolchain", lambda: (("compiler", "another"),))
    assert entry() != before
    assert Identity.of(BASE, parsed()).tuning_key(TARGET) == tuned


def test_records_of_another_version_are_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = entry()
    monkeypatch.setattr(key, "FORMAT", key.FORMAT + 1)
    assert entry() != before


def test_an_op_that_expands_to_the_same_keeps_its_kernel() -> None:
    """Of the real runtime: its names of nodes and places do not reach the key."""
    call = {"input_": ("float32", ("n", 3)), "filter_": ("float32", (4, 3)),
            "bias": ("float32", (4,)), "act": "RELU"}  # fmt: skip
    relu = stated_calls.request(dense, call)
    tanh = stated_calls.request(dense, call | {"act": "TANH"})
    assert produce.identity(relu) == produce.identity(relu)
    content, others = produce.identity(relu).content, produce.identity(tanh).content
    (expansion,) = (line for line in content if line.startswith("expansion "))
    assert expansion not in others


def test_the_machine_is_a_hash() -> None:
    assert len(key.machine()) == 12
