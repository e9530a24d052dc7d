"""`composite machine` prints what schedules know of a processor."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from composite.cli.main import main
from composite.compiler.tvm.machine import FAMILIES, Machine


def printed(*arguments: str) -> str:
    done = CliRunner().invoke(main, ["machine", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_processor_that_kernels_are_made_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPOSITE_ISA", "x86-64-v3")
    monkeypatch.setenv("COMPOSITE_MACHINE", "zen2")
    first, cores, name, *_ = printed().splitlines()
    assert first == "level: x86-64-v3"
    assert cores.startswith("cores: ")
    assert name == "name: zen2"


def test_a_named_one_as_json() -> None:
    found = Machine.of(json.loads(printed("broadwell", "--json")))
    assert found.l2 == FAMILIES["broadwell"].l2


def test_one_that_is_not_known() -> None:
    done = CliRunner().invoke(main, ["machine", "zen9"])
    assert done.exit_code != 0
    assert "'zen9' is no processor that schedules know: level, host, zen2," in done.output
