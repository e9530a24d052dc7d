"""Dependencies point one way, and what is heavy is imported only by what compiles."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import imports, rooms
from tests.held_by import HELD_BY

ROOT = Path(__file__).resolve().parent.parent
COMPILER = sorted((ROOT / "compiler").rglob("*.py"))
COMPOSITE = sorted(p for p in (ROOT / "composite").rglob("*.py") if "compiler" not in p.parts)
HEAVY = {"tvm", "tvm_ffi", "torch_mlir", "mlir"}

ROOMS = rooms.python_rooms()


def imported(path: Path, *, everywhere: bool) -> Iterator[str]:
    """Modules that a file imports: everywhere in it, or while it is itself imported."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree) if everywhere else at_import(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def at_import(tree: ast.Module) -> Iterator[ast.AST]:
    """The statements of a module that run when it is imported, `if TYPE_CHECKING` left out."""
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        pending.extend(ast.iter_child_nodes(node))


def imports_of_rooms() -> dict[str, dict[str, list[str]]]:
    """For each room those that it imports, and by which imports."""
    found: dict[str, dict[str, list[str]]] = {}
    for module, targets in imports.graph().items():
        own = found.setdefault(rooms.room_of(module), {})
        for target in sorted(targets):
            if rooms.room_of(target) != rooms.room_of(module):
                own.setdefault(rooms.room_of(target), []).append(f"{module} imports {target}")
    return found


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert imports.circles(imports.graph()) == []


def test_each_room_imports_what_it_may_and_no_more_is_allowed() -> None:
    found = imports_of_rooms()
    assert found.keys() == ROOMS.keys()
    forbidden = [
        line
        for name, targets in found.items()
        for target, lines in targets.items()
        if target not in ROOMS[name]
        for line in lines
    ]
    assert forbidden == []
    assert {name: set(targets) for name, targets in found.items()} == ROOMS


def test_rooms_are_in_layers() -> None:
    assert imports.circles(ROOMS) == []
    order = list(ROOMS)
    for name, allowed in ROOMS.items():
        assert all(order.index(one) < order.index(name) for one in allowed), name


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", COMPILER, ids=relative)
def test_the_compiler_does_not_know_composite(path: Path) -> None:
    for name in imported(path, everywhere=True):
        # "composite" itself is the first half of `from composite import compiler`.
        ours = name.startswith("composite.") and not name.startswith("composite.compiler")
        assert not ours, f"{relative(path)} imports {name}"


@pytest.mark.parametrize("path", sorted((ROOT / "compiler" / "errors").glob("*.py")), ids=relative)
def test_the_catalogue_of_errors_is_a_leaf(path: Path) -> None:
    for name in imported(path, everywhere=True):
        ours = name.startswith("composite.compiler.errors")
        assert ours or name.split(".")[0] in sys.stdlib_module_names, f"{path} imports {name}"


@pytest.mark.parametrize("path", COMPOSITE, ids=relative)
def test_composite_imports_nothing_heavy(path: Path) -> None:
    everywhere = path.parent.name != "hybrid"  # whose functions run TVM
    heavy = {n for n in imported(path, everywhere=everywhere) if n.split(".")[0] in HEAVY}
    assert not heavy, f"{relative(path)} imports {heavy}; only composite.compiler may"


def test_importing_composite_is_light(run_python: Any) -> None:
    code = "import sys, composite\nprint(*sorted({m.split('.')[0] for m in sys.modules}))"
    modules = set(run_python(code, bare=True).stdout.split())
    assert not modules & (HEAVY | {"tensorflow", "gast"})


def test_running_an_op_library_needs_no_compiler_modules() -> None:
    for name in (
        "aot/loading", "autodiff/gradient", "binding/native", "binding/settings", "counters",
        "ops/call", "ops/registry", "vectorize/batching",
    ):  # fmt: skip
        path = ROOT / "composite" / f"{name}.py"
        for module in imported(path, everywhere=False):
            assert not module.startswith(
                ("composite.compiler.frontend", "composite.compiler.tfr", "composite.compiler.tvm")
            ), f"composite/{name}.py imports {module} at import time"


def held() -> dict[str, list[str]]:
    """For each source of `HELD_BY`, the tests of its lines; a unit of C++ has no suffix."""
    found: dict[str, list[str]] = {}
    for test, sources in HELD_BY.items():
        folder = test.removeprefix("tests/").replace("runtime/", "composite/runtime/", 1)
        folder = folder.rpartition("/")[0].replace(
            "composite/runtime/harness", "composite/runtime/launch"
        )
        for name in sources.split():
            full = name.startswith(("composite/", "compiler/"))
            found.setdefault(name if full else f"{folder}/{name}", []).append(test)
    return found


def sources_without_a_test_of_their_name() -> set[str]:
    found = set()
    for path in (p for p in [*COMPOSITE, *COMPILER] if not is_a_docstring(p)):
        own = path.with_name(f"test_{path.name}").relative_to(ROOT)
        if not (ROOT / "tests" / own).is_file():
            found.add(relative(path))
    runtime = ROOT / "composite" / "runtime"
    for path in (p for p in runtime.glob("*/*") if p.suffix in (".h", ".cc")):
        unit = path.relative_to(runtime).with_suffix("")
        own = ROOT / "tests" / "runtime" / unit.with_name(f"test_{unit.name}.py")
        native = ROOT / "tests" / "runtime" / "harness" / f"{unit.name}_test.cc"
        if not own.is_file() and not native.is_file():
            found.add(f"composite/runtime/{unit}")
    return found


def is_a_docstring(path: Path) -> bool:
    """Whether nothing else is in a module, as in most of the `__init__.py`."""
    (first, *rest) = ast.parse(path.read_text(encoding="utf-8")).body
    return isinstance(first, ast.Expr) and not rest


def test_each_source_has_a_test_that_holds_it() -> None:
    lines = held()
    assert [test for test in HELD_BY if not (ROOT / test).is_file()] == []
    assert {source: tests for source, tests in lines.items() if len(tests) > 1} == {}
    without = sources_without_a_test_of_their_name()
    assert sorted(without - lines.keys()) == []
    assert sorted(lines.keys() - without) == []


def test_files_stay_readable() -> None:
    files = [
        path
        for folder in ("composite", "compiler", "tests", "benchmarks")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".cc", ".h")
    ]
    lengths = {relative(p): len(p.read_text(encoding="utf-8").splitlines()) for p in files}
    assert {path: length for path, length in lengths.items() if length > 400} == {}
    assert sorted(lengths.values())[len(lengths) // 2] < 130
    assert [f for f, n in Counter(path.parent for path in files).items() if n > 30] == []
