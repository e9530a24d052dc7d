"""Which sources make a kernel, and that a change of another one leaves it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from composite.kernels import toolchain
from tests.conftest import RunPython

ROOT = Path(__file__).parents[3] / "compiler"

SOURCES = {
    "tvm/build.py": "from composite.compiler.tvm import target\n",
    "tvm/target.py": "def f():\n    from composite.compiler import (\n        op_traits,\n    )\n",
    "op_traits/__init__.py": "import composite.compiler.op_traits.table\n",
    "op_traits/table.py": "",
    "frontend/body.py": "from composite.compiler.tvm import build\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def _digest(root: Path) -> str:
    return toolchain.digest(root, toolchain.sources(root))


@pytest.mark.parametrize(
    ("name", "takes_part"), [(name, not name.startswith("frontend")) for name in SOURCES]
)
def test_a_comment_in_a_source_that_takes_part_is_another_digest(
    root: Path, name: str, takes_part: bool
) -> None:
    before = _digest(root)
    (root / name).write_text(SOURCES[name] + "# why\n")
    assert (_digest(root) != before) == takes_part


def test_a_file_of_another_name_is_another_digest(root: Path) -> None:
    before = _digest(root)
    (root / "tvm" / "target.py").rename(root / "tvm" / "machine.py")
    assert _digest(root) != before


def test_all_that_kernels_are_made_by_takes_part() -> None:
    """As Python reads the imports, lazy ones too."""
    found = toolchain.sources(ROOT)
    assert {"tvm/build.py", "loop_body.py", "op_traits/__init__.py"} <= {
        path.relative_to(ROOT).as_posix() for path in found
    }
    assert not [path for path in found if path.is_relative_to(ROOT / "frontend")]
    for path in found:
        assert set(_imported(path)) <= found, path


def _imported(path: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if name.startswith("composite.compiler."):
                own = ROOT.joinpath(*name.split(".")[2:])
                yield from filter(Path.is_file, (own.with_suffix(".py"), own / "__init__.py"))


def test_the_versions_are_named() -> None:
    names = [name for name, _ in toolchain.toolchain()]
    assert names[:3] == ["compiler", "apache-tvm", "apache-tvm-ffi"]
    assert toolchain.versions(["pytest", "no-such-distribution"]) == {"pytest": pytest.__version__}


_DECLARES = """
import time
import composite
from composite.kernels import toolchain
from tests.composite.dense_ops import dense

end = time.monotonic() + 60
while not toolchain.toolchain.cache_info().currsize:
    assert time.monotonic() < end
    time.sleep(0.01)
assert composite.stats()["requests"] == 0
"""


def test_the_sources_are_read_before_the_first_request(
    run_python: RunPython, tmp_path: Path
) -> None:
    run_python(_DECLARES, env={"COMPOSITE_CACHE_DIR": str(tmp_path / "cache")})
