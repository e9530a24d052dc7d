"""The imports of the project as a graph of modules, and the circles of a graph.

Every import counts: at the top of a module, within a function, under `if TYPE_CHECKING`, and by
`import_module` of a name that is known in part, such as f".lower.{family}".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ANY = "*"  # in a name that is known in part: one part of it


def modules() -> dict[str, Path]:
    """The modules of composite, composite.compiler included, and their files."""
    found: dict[str, Path] = {}
    for folder, package in (("composite", "composite"), ("compiler", "composite.compiler")):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            if folder == "composite" and parts[0] == "compiler":
                continue  # a link to the other folder
            found[".".join((package, *parts)).removesuffix(".__init__")] = path
    return found


def graph() -> dict[str, set[str]]:
    """For each module of the project, the others of the project that it imports."""
    known = modules()
    found = {}
    for name, path in known.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        found[name] = set(imported(path.read_text(encoding="utf-8"), package, known)) - {name}
    return found


def imported(text: str, package: str, known: Collection[str]) -> Iterator[str]:
    """Those of the known modules that a source in `package` imports.

    `from a import b` imports a.b if that is a module, and a if it is not. The packages on the way
    to a module do not count.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = _absolute("." * node.level + (node.module or ""), package)
            members = (f"{source}.{alias.name}" for alias in node.names)
            names = [one if one in known else source for one in members]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = _matching(_absolute(_in_part(node.args[0], package), package), known)
        else:
            continue
        yield from (name for name in names if name in known)


def _absolute(name: str, package: str) -> str:
    """A module's name, which begins with dots where it is relative to `package`."""
    rest = name.lstrip(".")
    if rest == name:
        return name
    base = package.split(".")
    above = len(name) - len(rest) - 1
    return ".".join(base[: len(base) - above] + ([rest] if rest else []))


def _in_part(argument: ast.expr, package: str) -> str:
    """The name that an expression gives, as far as the source says it."""
    if isinstance(argument, ast.Constant):
        return str(argument.value)
    if not isinstance(argument, ast.JoinedStr):
        return ""
    parts = []
    for value in argument.values:
        if isinstance(value, ast.Constant):
            parts.append(str(value.value))
        elif isinstance(value, ast.FormattedValue):
            parts.append(package if ast.unparse(value.value) == "__name__" else ANY)
    return "".join(parts)


def _matching(name: str, known: Collection[str]) -> list[str]:
    pattern = r"\w+".join(map(re.escape, name.split(ANY)))
    return [one for one in known if re.fullmatch(pattern, one)]


def circles(graph: Mapping[str, Collection[str]]) -> list[list[str]]:
    """The strongly connected components of more than one node, each sorted (Tarjan 1972)."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = lowest[node] = len(index)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in index:
                visit(target)
                lowest[node] = min(lowest[node], lowest[target])
            elif target in stack:
                lowest[node] = min(lowest[node], index[target])
        if lowest[node] == index[node]:
            component = stack[stack.index(node) :]
            del stack[-len(component) :]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found
