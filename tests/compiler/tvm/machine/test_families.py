"""Processors by what CPUID says of them."""

from __future__ import annotations

import pytest

from composite.compiler.tvm.machine import FAMILIES
from composite.compiler.tvm.machine.families import family_of


@pytest.mark.parametrize(
    ("vendor", "family", "model", "name"),
    [
        ("AuthenticAMD", 0x17, 0x31, "zen2"),  # Rome
        ("AuthenticAMD", 0x19, 0x01, "zen3"),  # Milan
        ("AuthenticAMD", 0x19, 0x21, "zen3"),  # Vermeer
        ("AuthenticAMD", 0x19, 0x11, "zen4"),  # Genoa
        ("AuthenticAMD", 0x19, 0x61, "zen4"),  # Raphael
        ("AuthenticAMD", 0x19, 0xA0, "zen4"),  # Bergamo
        ("AuthenticAMD", 0x1A, 0x02, "zen5"),  # Turin
        ("GenuineIntel", 6, 0x4F, "broadwell"),
        ("GenuineIntel", 6, 0x55, "skylake-avx512"),
        ("GenuineIntel", 6, 0x6A, "icelake-server"),
        ("GenuineIntel", 6, 0x8F, "sapphirerapids"),
        ("GenuineIntel", 6, 0xAD, "graniterapids"),
    ],
)
def test_known_families(vendor: str, family: int, model: int, name: str) -> None:
    found = family_of(vendor, family, model)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    ("vendor", "family", "model"),
    [
        ("AuthenticAMD", 0x15, 0x02),
        ("AuthenticAMD", 0x17, 0x01),
        ("GenuineIntel", 6, 0x0F),
        ("", 0, 0),
    ],
)
def test_others_are_not_known(vendor: str, family: int, model: int) -> None:
    assert family_of(vendor, family, model) is None


@pytest.mark.parametrize("name", FAMILIES)
def test_a_processor_is_plausible(name: str) -> None:
    machine = FAMILIES[name]
    assert machine.registers == (32 if machine.lanes == 16 else 16)
    assert machine.l1.size < machine.l2.size < machine.l3.size
    assert machine.l1.bandwidth >= machine.l2.bandwidth >= machine.l3.bandwidth > machine.memory
    assert 1.0 <= machine.multiply_adds <= 2.0
