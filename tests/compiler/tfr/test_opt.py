"""Passes over TFR as text, and the command that runs them: what it prints, and where errors are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from composite import Composite
from composite.cli.main import main
from composite.compiler.tfr import opt

MODULE = """\
func.func @Body(%x: !tfr.tensor) -> !tfr.tensor {
  %on = "tfr.constant"() {value = true} : () -> !tfr.attr
  %off = "tfr.unary"(%on) {operator = "not"} : (!tfr.attr) -> !tfr.attr
  %truth = "tfr.truth"(%off) : (!tfr.attr) -> i1
  %y = scf.if %truth -> (!tfr.tensor) {
    %z = func.call @unused(%x) : (!tfr.tensor) -> !tfr.tensor
    scf.yield %z : !tfr.tensor
  } else {
    %a = "tfr.binary"(%x, %x) {operator = "mul"} : (!tfr.tensor, !tfr.tensor) -> !tfr.tensor
    %b = "tfr.binary"(%x, %x) {operator = "mul"} : (!tfr.tensor, !tfr.tensor) -> !tfr.tensor
    %sum = "tfr.binary"(%a, %b) {operator = "add"} : (!tfr.tensor, !tfr.tensor) -> !tfr.tensor
    scf.yield %sum : !tfr.tensor
  }
  return %y : !tfr.tensor
}
func.func private @unused(%x: !tfr.tensor) -> !tfr.tensor {
  return %x : !tfr.tensor
}
"""


@Composite("OptBody", inputs=["x: float"], attrs=["k: int"], outputs=["y: float"])
def body(x: Any, k: Any) -> Any:
    for i in range(k):
        x = x * x + (2.0 if i else 3.0)
    return x


def run(*arguments: object, given: str | None = None) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["opt", *map(str, arguments)], input=given)
    return done.exit_code, done.output


@pytest.mark.parametrize(
    "passes",
    [(), ("canonicalize",), ("cse",), ("canonicalize", "cse", "symbol-dce")],
    ids=lambda passes: "_".join(passes) or "nothing",
)
def test_named_passes_in_their_order(golden: Any, tmp_path: Path, passes: tuple[str, ...]) -> None:
    file = tmp_path / "module.mlir"
    file.write_text(MODULE)
    asked = [word for name in passes for word in ("--pass", name)]
    code, printed = run(file, *asked)
    assert code == 0
    golden(printed, f"opt_{'_'.join(passes) or 'nothing'}.mlir")
    assert run("-", given=printed) == (0, printed)  # what is printed is a module again
    out = tmp_path / "out.mlir"
    assert run(file, *asked, "-o", out) == (0, "")
    assert out.read_text() == printed


def test_the_module_of_an_op_is_read_with_its_places(tmp_path: Path) -> None:
    file = tmp_path / "body.mlir"
    file.write_text(body.mlir)
    assert run(file, "--locations") == (0, body.mlir)
    code, printed = run(file)
    assert code == 0 and "loc(" not in printed and "test_opt.py" in body.mlir
    stripped = run(file, "--pass", "strip-debuginfo", "--locations")[1]
    assert "loc(unknown)" in stripped and 'loc("' not in stripped


ERRORS = {
    "func.func @f( {\n": "{file}:1:14: error: expected non-function type",
    MODULE.replace("%b)", "%nothing)"): ("{file}:11:29: error: use of undeclared SSA value name"),
    MODULE.replace('"not"', '"nor"'): (
        "{file}:3:10: error: '\"nor\"' does not satisfy the constraint\n"
        "{file}:3:10: note: see current operation: "
    ),
    MODULE.replace("tfr.truth", "tfr.falsity"): (
        "{file}:4:12: error: unregistered operation 'tfr.falsity' found"
    ),
    MODULE.replace("() -> !tfr.attr", '() -> !tfr.attr loc("ops.py":7:3)').replace(
        "{value = true}", "{}"
    ): "ops.py:7:3: error: ",
}


@pytest.mark.parametrize("text", ERRORS)
def test_errors_begin_with_file_line_and_column(tmp_path: Path, text: str) -> None:
    file = tmp_path / "module.mlir"
    file.write_text(text)
    code, printed = run(file)
    assert code == 1
    assert printed.startswith("composite: " + ERRORS[text].format(file=file)), printed
    assert run("-", given=text)[1].startswith("composite: " + ERRORS[text].format(file="<stdin>"))


def test_what_is_no_pass_is_named_with_those_there_are(tmp_path: Path) -> None:
    file = tmp_path / "module.mlir"
    file.write_text(MODULE)
    code, printed = run(file, "--pass", "inline")
    assert code == 1
    assert "there is no pass inline: the passes are canonicalize, cse, symbol-dce" in printed
    assert ", ".join(opt.PASSES) in printed
    assert run(tmp_path / "none.mlir")[0] == 2
