"""Targets: levels of the psABI, vector shapes, this machine."""

from __future__ import annotations

import dataclasses

import pytest

from composite.compiler.tvm import Target


def test_host_is_a_level_with_its_cores() -> None:
    host = Target.host()
    assert host == Target.of(host.isa, host.cores)
    assert host.cores >= 1
    assert host.key == f"{host.mcpu}-{host.cores}"


@pytest.mark.parametrize(
    ("isa", "lanes", "registers"),
    [("x86-64-v2", 4, 16), ("x86-64-v3", 8, 16), ("x86-64-v4", 16, 32)],
)
def test_levels(isa: str, lanes: int, registers: int) -> None:
    target = Target.of(isa, 4)
    assert (target.lanes, target.registers) == (lanes, registers)
    with pytest.raises(dataclasses.FrozenInstanceError):
        target.lanes = 1  # type: ignore[misc]


def test_unknown_level() -> None:
    with pytest.raises(ValueError, match="no level that kernels are made for"):
        Target.of("sparc", 1)
