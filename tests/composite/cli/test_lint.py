"""`composite lint`: its exit codes, its text, its JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from composite.cli.main import main

OPS = Path(__file__).parents[1] / "linting" / "ops.py"


def run(*args: object) -> Any:
    return CliRunner().invoke(main, ["lint", *map(str, args)])


def test_an_op_with_kernels_is_0() -> None:
    done = run(f"{OPS}:clean", "--shape", "x=n,8")
    assert done.exit_code == 0, done.output
    assert "no call without a kernel was found, no warnings" in done.output


def test_an_op_without_a_kernel_is_1() -> None:
    done = run(f"{OPS}:unlisted", "--shape", "x=n,8", "--attr", "act=STEP")
    assert done.exit_code == 1
    assert "unlisted, forward\n    op Bucketize is not in the kernel table\n" in done.output


def test_warnings_are_1_if_asked() -> None:
    call = (f"{OPS}:varying", "--shape", "x=m,n")
    assert run(*call).exit_code == 0
    assert run(*call, "--strict").exit_code == 1


def test_attributes_alone_are_of_all_calls() -> None:
    assert run(f"{OPS}:rated").exit_code == 1
    done = run(f"{OPS}:rated", "--attr", "rate=0.5", "--kinds", 2)
    assert done.exit_code == 0, done.output


def test_json() -> None:
    said = json.loads(run(f"{OPS}:caller", "--shape", "x=n,8", "--json").stdout)
    assert said["ok"] is False
    assert {finding["op"] for finding in said["findings"]} == {"caller"}
    assert said["coverage"] == [
        {"op": "caller", "calls": 1, "forward": 0, "gradients": 1, "backward": 0, "notes": []}
    ]
