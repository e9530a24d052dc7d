"""`composite.build`: a folder that carries ops into a process with no compiler.

The pipeline in plain lines: collect the ops and whatever they call, compile a kernel for each
stated signature, check and measure it, write the texts, link the library, move the folder into
place. Bytes depend on the sources, the toolchain and the target alone; measured times go to
timings.json.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from composite import gradient, manifest, native, prebuild
from composite.compiler.emit.docs import docs
from composite.compiler.emit.library import LibraryOp
from composite.compiler.emit.registration import program_symbol, registration, status_symbol
from composite.compiler.emit.stubs import stubs
from composite.compiler.emit.timings import read, timings
from composite.compiler.emit.wrapper import wrapper
from composite.jit import key
from composite.jit.decisions import Decision
from composite.loading import SPLIT
from composite.op import CompositeOp
from composite.records import serialize

_TIMINGS = "timings.json"

Signatures = Mapping[str, Sequence[Mapping[str, Any]]]

_LINK_FLAGS = ["-shared", "-s", "-Wl,-Bsymbolic", "-Wl,--build-id=none", "-Wl,-rpath,$ORIGIN"]


def build(
    source: str | os.PathLike[str] | CompositeOp | Iterable[CompositeOp],
    out: str | os.PathLike[str],
    *,
    name: str | None = None,
    signatures: Signatures | None = None,
) -> Path:
    """Writes a library of ops and kernels to the folder `out`, replacing a library that is there.

    source: a Python file that defines composites, or ops. Ops that they call go along.
    name: of the library, an identifier; by default the file's.
    signatures: for an op's Python name, the calls to compile kernels for: keyword arguments as in
    `CompositeOp.add_signature`, whose calls are compiled as well. Calls that no kernel covers run
    TensorFlow's ops.
    Returns the folder. ValueError for a signature that no kernel can be made for, FileExistsError
    when `out` is something else than a library, RuntimeError when there is no C compiler.
    """
    ops, default = _ops_of(source)
    name = name or default
    if not name or not name.isidentifier():
        raise ValueError(f"composite.build: name={name!r} is not an identifier")
    target = Path(out)
    _check_replaceable(target)
    ordered = _with_callees(ops)
    stated = _stated(ordered, signatures or {})
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        made = Path(folder) / "made"
        made.mkdir(mode=0o755)
        _write(made, name, ordered, stated, _before(target))
        _move(made, target, Path(folder) / "old")
    return target


def _write(
    folder: Path,
    name: str,
    ops: Sequence[CompositeOp],
    stated: Sequence[tuple[CompositeOp, Any]],
    before: Mapping[str, Decision],
) -> None:
    described = [_described(op) for op in ops]
    built = [prebuild.kernel(op, arguments, before) for op, arguments in stated]
    kernels = [kernel.description for kernel in built]
    texts = {
        f"{name}.py": wrapper(name, described),
        f"{name}.pyi": stubs(name, described),
        f"{name}.mlir": SPLIT.join(op.mlir for op in described),
        f"{name}.md": docs(name, described, kernels),
    }
    files = {file: text.encode() for file, text in texts.items()}
    objects = {file: data for kernel in built for file, data in kernel.objects.items()}
    files[f"lib{name}.so"] = _link(name, registration(name, described, kernels), objects)
    for file, data in files.items():
        (folder / file).write_bytes(data)
    (folder / manifest.NAME).write_text(
        manifest.text(name, described, kernels, files), encoding="utf-8"
    )
    measured = {k.description.name: k.timing for k in built}
    (folder / _TIMINGS).write_text(timings(key.machine(), measured), encoding="utf-8")


def _before(target: Path) -> dict[str, Decision]:
    """What was decided when the library that is there was built on this machine."""
    path = target / _TIMINGS
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return prebuild.decisions_of(read(text, key.machine()))


def _described(op: CompositeOp) -> LibraryOp:
    return LibraryOp(
        python_name=op.__name__,
        schema=op.schema,
        doc=op.__doc__ or "",
        digest=op.digest,
        program=serialize(op.program),
        mlir=op.mlir,
        own_gradient=gradient.overridden(op.op_name, op.digest),
        composes=op.composes,
        replaces=op.program.function[0].attr["_replaces"].b if op.composes else False,
    )


def _link(name: str, source: str, objects: Mapping[str, bytes]) -> bytes:
    """The bytes of the library. Names are relative and the folder is fresh: no path gets in."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise RuntimeError(
            "composite.build needs a C compiler, and there is no `cc`: apt install gcc, or set CC"
        )
    with tempfile.TemporaryDirectory(prefix="composite-") as folder:
        where = Path(folder)
        (where / "registration.c").write_text(source, encoding="utf-8")
        exported = f"{status_symbol(name)}; {program_symbol(name)};"
        (where / "exports.map").write_text(f"{{ global: {exported} local: *; }};\n")
        for file, data in objects.items():
            (where / file).write_bytes(data)
        command = [compiler, "-O1", "-fPIC", *_LINK_FLAGS, "-Wl,--version-script=exports.map"]
        command += ["-o", "library.so", "registration.c", *sorted(objects)]
        command += [f"-L{native.runtime_folder()}", f"-l:{native.LIBRARY}", "-ldl"]
        command += ["-Wl,--as-needed", "-lm"]  # what has no vector form is libm's
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
        return (where / "library.so").read_bytes()


def _check_replaceable(target: Path) -> None:
    if not target.exists() or (target / manifest.NAME).is_file():
        return
    if not target.is_dir() or any(target.iterdir()):
        raise FileExistsError(f"{target} is no library of composite.build: it is left as it is")


def _move(made: Path, target: Path, old: Path) -> None:
    if target.exists():
        target.rename(old)  # goes with the temporary folder
    made.rename(target)


class _Found(NamedTuple):
    ops: list[CompositeOp]
    name: str | None


def _ops_of(source: Any) -> _Found:
    if isinstance(source, CompositeOp):
        return _Found([source], None)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        module = _imported(path) or _import(path)
        ops = [value for value in vars(module).values() if isinstance(value, CompositeOp)]
        if not ops:
            raise ValueError(f"{path} defines no composite op")
        return _Found(list(dict.fromkeys(ops)), path.stem)
    return _Found(list(source), None)


def _imported(path: Path) -> ModuleType | None:
    """The module of this process that comes from the file, if there is one."""
    real = os.path.realpath(path)
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and os.path.realpath(file) == real:
            return module
    return None


def _import(path: Path) -> ModuleType:
    name = path.stem if path.stem not in sys.modules else f"composite_build_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))  # as `python file.py` would have it
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.path.pop(0)
    return module


def _with_callees(ops: Sequence[CompositeOp]) -> list[CompositeOp]:
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


def _stated(
    ops: Sequence[CompositeOp], signatures: Signatures
) -> list[tuple[CompositeOp, Mapping[str, Any]]]:
    names = {op.__name__ for op in ops}
    if unknown := sorted(set(signatures) - names):
        raise ValueError(f"signatures for {unknown}, but the ops are {sorted(names)}")
    return [
        (op, arguments)
        for op in ops
        for arguments in (*op.signatures, *signatures.get(op.__name__, ()))
    ]
