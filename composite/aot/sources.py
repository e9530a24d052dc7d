"""From a Python file, or op objects, to the ops of a library and the files that they are made of.

A file that lies in a package is imported as that package's module, so that its relative imports
work and the places in it read the same however it was imported before.

Not for: what is made of the ops (building.py), whether it has to be made again (inputs.py).
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from composite.aot.installed import is_installed
from composite.ops.op import CompositeOp


class Found(NamedTuple):
    """Ops in the order in which they are defined.

    module: the one that defines them; None for ops that were given as objects.
    before: the files that the process had imported already.
    """

    ops: list[CompositeOp]
    module: ModuleType | None
    before: frozenset[Path] = frozenset()

    def is_as_on_disk(self) -> bool:
        """Whether no file of the module was written after this process had imported it."""
        known = self.before.intersection(files(self.module)) if self.module else ()
        started = _process_start()
        return all(path.stat().st_mtime < started for path in known)


def find(source: str | os.PathLike[str] | CompositeOp | Iterable[CompositeOp]) -> Found:
    """The ops of a Python file, which is imported unless it was, or those that are given.

    FileNotFoundError for no Python file, ValueError where there are no ops, TypeError for what is
    none, and whatever the file itself raises.
    """
    if isinstance(source, CompositeOp):
        return Found([source], None)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        known = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        before = frozenset(_real(file) for file in known if file)
        module = imported(path) or load(path)
        ops = [value for value in vars(module).values() if isinstance(value, CompositeOp)]
        if not ops:
            raise ValueError(f"{path} defines no composite op")
        return Found(list(dict.fromkeys(ops)), module, before)
    return Found(_given(source), None)


def _given(ops: Iterable[CompositeOp]) -> list[CompositeOp]:
    given = list(ops)
    if not given:
        raise ValueError("composite.build: no ops are given, and a library has at least one")
    for op in given:
        if not isinstance(op, CompositeOp):
            raise TypeError(f"composite.build: {op!r} is not an op: decorate it with @Composite")
    return given


def _process_start() -> float:
    """When this process began, in seconds since the epoch."""
    ticks = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    lines = Path("/proc/stat").read_text().splitlines()
    boot = next(int(line.split()[1]) for line in lines if line.startswith("btime"))
    return boot + int(ticks) / os.sysconf("SC_CLK_TCK")


def imported(path: Path) -> ModuleType | None:
    """The module of this process that comes from the file, if there is one."""
    real = Path(path).resolve()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and _real(file) == real:
            return module
    return None


@functools.cache
def _real(file: str) -> Path:
    """The path of a module's file without links: a process with TensorFlow has thousands."""
    return Path(file).resolve()


def load(path: Path) -> ModuleType:
    """Imports a file, as a module of its package if it lies in one, as `python file.py` else.

    FileNotFoundError for no Python file, ValueError for one that exits, and whatever it raises.
    """
    if path.suffix != ".py" or not path.is_file():
        raise FileNotFoundError(f"{path} is not a Python file")
    root, parts = _package(path)
    sys.path.insert(0, str(root))
    try:
        if len(parts) > 1 and not _is_another(parts[0], root):
            return importlib.import_module(".".join(parts))
        name = parts[-1] if parts[-1] not in sys.modules else f"composite_build_{parts[-1]}"
        return _execute(name, path)
    except SystemExit as error:
        raise ValueError(
            f"{path} ends the process when it is imported (exit code {error.code!r}): put what it "
            'runs under `if __name__ == "__main__":`'
        ) from error
    except SyntaxError as error:
        error.filename = error.filename or str(path)  # null bytes are found before it is known
        raise
    finally:
        sys.path.remove(str(root))


def _package(path: Path) -> tuple[Path, list[str]]:
    """The folder that a file's outermost package lies in, and the module's name from there."""
    folder, parts = path.resolve().parent, [path.stem]
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, parts[:-1] if len(parts) > 1 and path.stem == "__init__" else parts


def _is_another(name: str, root: Path) -> bool:
    """Whether the process has a package of that name from somewhere else."""
    file = getattr(sys.modules.get(name), "__file__", None)
    return name in sys.modules and (not file or Path(file).resolve().parent.parent != root)


def _execute(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # it is a .py file
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def with_callees(ops: Sequence[CompositeOp]) -> list[CompositeOp]:
    """The ops and all that they call, each after what it calls."""
    ordered: dict[str, CompositeOp] = {}

    def add(op: CompositeOp) -> None:
        for callee in op.callees():
            if callee.digest not in ordered:
                add(callee)
        ordered.setdefault(op.digest, op)

    for op in ops:
        add(op)
    return list(ordered.values())


def file_in_package(file: str) -> str:
    """A file's name in the places of a program, as it is however the module was imported.

    A place names its file by the parts of the module's name. Of these only the packages on disk
    stay: those that have an `__init__.py`, whatever folder the process found the first one from.
    """
    name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    path = getattr(sys.modules.get(name), "__file__", None)
    if not path or not path.endswith(file):
        return file
    root, _ = _package(Path(path))
    return Path(path).resolve().relative_to(root).as_posix()


def module_in_package(name: str) -> str:
    """The name of a module, likewise."""
    file = file_in_package(name.replace(".", "/") + ".py")
    return file.removesuffix(".py").replace("/", ".")


def files(module: ModuleType) -> list[Path]:
    """The file of a module and those of all modules that it imports and that nobody installed.

    Read from the import statements, wherever they stand; what is imported by other means is not
    found. Python's own modules, installed packages and this one are left out.
    """
    found: dict[Path, None] = {}
    pending = [module]
    while pending:
        one = pending.pop()
        path = Path(str(one.__file__)).resolve() if one is module else _own_file(one)
        if path is None or path in found:
            continue
        found[path] = None
        tree = ast.parse(path.read_bytes())
        own = [] if one.__spec__ is None else _with_parents(one.__spec__.name)
        names = dict.fromkeys([*own, *_imports(tree, one.__package__ or "")])
        pending += [sys.modules[name] for name in names if name in sys.modules]
    return list(found)


def _own_file(module: ModuleType) -> Path | None:
    name, file = module.__name__, getattr(module, "__file__", None)
    if not file or not file.endswith(".py") or name.split(".")[0] == "composite":
        return None
    return None if is_installed(file) else Path(file).resolve()


def _imports(tree: ast.Module, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            outer = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(outer if node.level else []), *filter(None, [node.module])])
            yield from _with_parents(base)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    yield from (".".join(parts[: i + 1]) for i in range(len(parts)))


def named(ops: Sequence[CompositeOp], name: str) -> Any:
    """The op of a Python name, or of TensorFlow's name. LookupError lists those that there are."""
    for op in ops:
        if name in (op.__name__, op.op_name):
            return op
    raise LookupError(f"there is no op {name!r}; there are {', '.join(op.__name__ for op in ops)}")
