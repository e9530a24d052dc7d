"""The processor that this process runs on, and processors by their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from composite.compiler.tvm.machine import FAMILIES, LEVELS, host_level, machine_named
from composite.compiler.tvm.machine.host import caches


def _index(folder: Path, number: int, **facts: str) -> None:
    index = folder / f"index{number}"
    index.mkdir()
    for name, value in facts.items():
        (index / name).write_text(value + "\n")


def test_caches_as_linux_shows_them(tmp_path: Path) -> None:
    _index(tmp_path, 0, type="Data", level="1", size="48K", shared_cpu_list="0,64")
    _index(tmp_path, 1, type="Instruction", level="1", size="32K", shared_cpu_list="0,64")
    _index(tmp_path, 2, type="Unified", level="2", size="2048K", shared_cpu_list="0,64")
    _index(tmp_path, 3, type="Unified", level="3", size="107520K", shared_cpu_list="0-15,64-79")
    assert caches(tmp_path) == {
        "l1": (48 << 10, 2), "l2": (2 << 20, 2), "l3": (105 << 20, 32),
    }  # fmt: skip


def test_a_machine_may_show_no_caches(tmp_path: Path) -> None:
    assert caches(tmp_path / "nothing") == {}
    (tmp_path / "index0").mkdir()
    assert caches(tmp_path) == {}


def test_this_machine_runs_the_code_of_its_level() -> None:
    level = host_level()
    machine = machine_named("host", level)
    assert (machine.lanes, machine.registers) == (LEVELS[level].lanes, LEVELS[level].registers)
    assert machine.l1.size < machine.l2.size < machine.l3.size


def test_any_processor_of_a_level() -> None:
    assert machine_named("level", "x86-64-v3") == LEVELS["x86-64-v3"]


def test_code_of_a_lower_level_has_its_vectors() -> None:
    """Half a vector is multiplied in half the time where a whole one takes two halves."""
    whole, half = FAMILIES["zen4"], machine_named("zen4", "x86-64-v3")
    assert (whole.lanes, whole.multiply_adds) == (16, 1.0)
    assert (half.lanes, half.registers, half.multiply_adds, half.loads) == (8, 16, 2.0, 2.0)
    assert half.l2 == whole.l2


def test_a_processor_that_is_not_known() -> None:
    with pytest.raises(
        ValueError, match=r"'zen9' is no processor that schedules know: level, host"
    ):
        machine_named("zen9", "x86-64-v3")
