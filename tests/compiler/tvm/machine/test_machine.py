"""A processor as a value."""

from __future__ import annotations

import dataclasses
import json

import pytest

from composite.compiler.tvm import Target
from composite.compiler.tvm.machine import FAMILIES, LEVELS, Machine
from composite.compiler.tvm.target import CudaTarget


@pytest.mark.parametrize("machine", [*LEVELS.values(), *FAMILIES.values()], ids=lambda m: m.name)
def test_it_survives_json(machine: Machine) -> None:
    assert Machine.of(json.loads(json.dumps(dataclasses.asdict(machine)))) == machine


@pytest.mark.parametrize(
    "target",
    [Target.of("x86-64-v3", 2, FAMILIES["zen2"]), CudaTarget.level("sm_90", tensor_float_32=True)],
    ids=["cpu", "gpu"],
)
def test_a_target_survives_json(target: Target) -> None:
    assert type(target).read(json.loads(json.dumps(dataclasses.asdict(target)))) == target


def test_kernels_for_a_processor_have_keys_of_their_own() -> None:
    keys = {Target.of("x86-64-v3", 2, machine).key for machine in (None, *FAMILIES.values())}
    assert len(keys) == 1 + len(FAMILIES)
    assert Target.of("x86-64-v3", 2).key == "x86-64-v3-2"
    assert Target.of("x86-64-v3", 2, FAMILIES["zen2"]).key == "x86-64-v3-2-zen2"


def test_the_text_has_a_fact_a_line() -> None:
    text = str(LEVELS["x86-64-v3"])
    assert "name: x86-64-v3" in text
    assert "l1: size 32768, cores 1, bandwidth 64.0" in text
