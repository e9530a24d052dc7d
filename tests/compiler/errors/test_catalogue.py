"""The catalogue: each entry has an example that is printed as docs/errors.md says, none is dead."""

from __future__ import annotations

import ast
import linecache
import pickle
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import Composite
from composite.compiler.errors import CATALOGUE, Mistake, catalogue
from composite.compiler.errors.page import module_of, page
from composite.compiler.source import CompositeSyntaxError

ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted([*(ROOT / "compiler").rglob("*.py"), *(ROOT / "composite").rglob("*.py")])


def refused(mistake: Mistake) -> Exception:
    """Run the example of an entry as a module "ops"; returns what it raises."""
    text = module_of(mistake)
    linecache.cache["ops.py"] = (len(text), None, text.splitlines(keepends=True), "ops.py")
    names = {"__name__": "ops", "tf": tf, "np": np, "Composite": Composite}
    try:
        exec(compile(text, "ops.py", "exec"), names)
    except (CompositeSyntaxError, OSError, TypeError) as error:
        return error
    finally:
        del linecache.cache["ops.py"]
    raise AssertionError(f"the example of {mistake.code} raises nothing")


def printed(mistake: Mistake) -> str:
    return "".join(traceback.format_exception_only(refused(mistake)))


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("mistake", CATALOGUE, ids=lambda one: one.code)
def test_an_example_makes_its_mistake_and_no_other(mistake: Mistake) -> None:
    assert re.findall(r"\[(C\d{3})\]", str(refused(mistake))) == [mistake.code]


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_the_page(golden: Callable[[str, str], None]) -> None:
    golden(page(printed), str(ROOT / "docs" / "errors.md"))


def test_codes_are_unique_and_in_order() -> None:
    codes = [one.code for one in CATALOGUE]
    assert codes == sorted(set(codes))
    assert all(re.fullmatch(r"C\d{3}", code) for code in codes)


def named() -> dict[str, Mistake]:
    """The entries by the names that sources have for them."""
    families = catalogue.FAMILIES.values()
    return {k: v for one in families for k, v in vars(one).items() if isinstance(v, Mistake)}


def test_an_entry_has_one_name() -> None:
    assert Counter(named().values()) == Counter(CATALOGUE)


def used(path: Path) -> set[str]:
    """The entries that a file names outside of its imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & named().keys()


def test_every_entry_is_used() -> None:
    files = [path for path in SOURCES if path.parent.name != "errors"]
    assert set().union(*map(used, files)) == named().keys()


def reports(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls that report a mistake at a node of a source."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            if node.func.attr in ("fail", "error") and owner.endswith("source"):
                yield node


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_report_names_an_entry(path: Path) -> None:
    for call in reports(ast.parse(path.read_text(encoding="utf-8"))):
        where = f"{path}:{call.lineno}: {ast.unparse(call)}"
        assert len(call.args) == 3, where
        given = ast.unparse(call.args[1])
        assert given in named() or given.endswith("mistake"), where


def test_no_error_of_the_language_is_made_without_an_entry() -> None:
    made = re.compile(
        r"raise (CompositeSyntaxError|SourceNotFoundError|NotAFunctionError)\((?!\s*[A-Z])"
    )
    assert [path for path in SOURCES if made.search(path.read_text(encoding="utf-8"))] == []


def test_an_error_carries_its_entry() -> None:
    error: Any = refused(named()["NO_ATTRIBUTE"])
    assert error.mistake is named()["NO_ATTRIBUTE"]
    assert error.msg == f"{error.sentence} [C056]"
    assert (error.calls, error.others) == ((), ())


def test_an_error_is_the_same_in_another_process() -> None:
    error: Any = refused(named()["NO_ATTRIBUTE"])
    again = pickle.loads(pickle.dumps(error))
    assert (again.args, again.mistake, again.parts) == (error.args, error.mistake, (again,))
