"""The rows as C++ has them, and that they can be written before the project can be imported."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from composite.compiler import op_traits
from composite.compiler.op_traits import Runs, cpp_table

COMPILER = Path(__file__).resolve().parents[3] / "compiler"
ROW = re.compile(
    r'\{"(?P<name>\w+)", "(?P<twin>\w*)", Runs::k(?P<runs>\w+), (?P<structural>true|false), '
    r"Work::k(?P<work>\w+), (?P<draws>true|false)\},"
)


def test_rows_are_those_of_the_table_in_the_order_of_their_bytes() -> None:
    head, *lines = cpp_table.text().splitlines()
    assert head.startswith("// Generated")
    rows = [row for line in lines if (row := ROW.fullmatch(line))]
    assert len(rows) == len(lines)
    names = [row["name"].encode() for row in rows]
    assert names == sorted(set(names))
    for row in rows:
        traits = op_traits.of(row["name"])
        assert row["twin"] == traits.stateless_twin
        assert row["runs"] == ("Nothing" if traits.runs is None else traits.runs.name.title())
        assert (row["structural"] == "true") == traits.structural
        assert (row["work"] == "Unknown") == (traits.family is None)
        assert (row["draws"] == "true") == traits.draws
    left_out = op_traits.TABLE.keys() - {row["name"] for row in rows}
    for name in left_out:
        traits = op_traits.of(name)
        assert not (traits.stateless_twin or traits.runs or traits.structural or traits.family), (
            name
        )
    assert {traits.runs for traits in map(op_traits.of, (row["name"] for row in rows))} > set(Runs)


def test_what_kernels_do_for_an_op() -> None:
    found = [row for line in cpp_table.text().splitlines() if (row := ROW.fullmatch(line))]
    rows = {row["name"]: row["work"] for row in found}
    some = ("MatMul", "Conv2D", "Tanh", "Softmax", "Reshape", "Shape", "While")
    assert [rows[name] for name in some] == [
        "Sums", "Sums", "Maps", "Computes", "Moves", "Moves", "Unknown",
    ]  # fmt: skip


def test_a_build_writes_it_with_nothing_but_python(tmp_path: Path) -> None:
    file = tmp_path / "table.inc"
    # -S: without what is installed, TensorFlow and this project among it.
    command = [sys.executable, "-S", "-m", "op_traits.cpp_table", str(file)]
    environment = {**os.environ, "PYTHONPATH": str(COMPILER)}
    subprocess.run(command, env=environment, check=True, timeout=60)
    assert file.read_text(encoding="ascii") == cpp_table.text()
