"""Facts about processors stand in the room of machines, and nowhere else in the compiler."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import ROOT

TVM = ROOT / "compiler" / "tvm"
_OF_PROCESSORS = re.compile(
    r"\b(cycles?|caches?|L[123]|latency|latencies|prefetch\w*|bandwidth|pages?|ports?)\b"
)
# What remains in cost models of single strategies; an entry goes when its cost is a machine's.
KNOWN = {
    "strategy/row_program.py": {"_KEEP_COST"},
    "strategy/cpu/elementwise/epilogue.py": {"_LONG"},
    "strategy/cpu/scan.py": {"_COLUMNS"},
    "strategy/cpu/product/blocking.py": {"BLOCK_ROWS", "_WIDEST"},
    "strategy/cpu/product/gemm.py": {
        "_PAGE_CONFLICTS", "_REFETCHED", "_STRIDED", "_STRIDED_FAR", "_TRANSPOSED",
    },
    "strategy/cpu/product/pack_rows.py": {"_APART"},
    "strategy/cpu/product/panels.py": {"_ROWS"},
    "strategy/cpu/product/product.py": {"_STREAMED"},
    "strategy/cpu/rows/reduction.py": {"_COLUMNS"},
    "strategy/cpu/rows/rows.py": {"_BLOCK_ROWS"},
}  # fmt: skip


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Numbers of a module that have names, each with the text that explains it."""
    waiting: list[str] = []
    for statement in tree.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            yield from ((name, str(statement.value.value)) for name in waiting)
            waiting = []
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and _is_number(statement.value):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            named = [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
            waiting += [name for name in named if name.isupper()]
        else:
            waiting = []


def _is_number(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Tuple):
        return all(map(_is_number, value.elts))
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float)


def _found(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {name for name, text in _constants(tree) if _OF_PROCESSORS.search(text)}


def test_no_other_room_states_facts_about_processors() -> None:
    found = {
        str(path.relative_to(TVM)): names
        for path in TVM.rglob("*.py")
        if path.parent != TVM / "machine" and (names := _found(path))
    }
    assert found == KNOWN


def test_a_constant_is_found(tmp_path: Path) -> None:
    module = tmp_path / "one.py"
    module.write_text('_A, _B = 2 * 1024, 3\n"""Bytes of an L1 cache."""\n_C = 4\n"""Rows."""\n')
    assert _found(module) == {"_A", "_B"}
