"""The files of a library: wrapper, stubs, text, page, manifest, and the shared object.

Equal ops and kernels give equal bytes, whatever the folders and the machine are called.

Not for: which kernels a library has (building.py), how its folder is replaced (replacing.py).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from composite.aot import inputs, manifest, sources
from composite.aot.loading import SPLIT
from composite.aot.prebuild import BuiltKernel
from composite.aot.replacing import naming
from composite.aot.standalone_tables import tables
from composite.binding import native, program_marks
from composite.binding.program_marks import ProgramMarks
from composite.binding.records import serialize
from composite.compiler.emit.docs import docs
from composite.compiler.emit.library import LibraryOp
from composite.compiler.emit.registration import program_symbol, registration, status_symbol
from composite.compiler.emit.standalone import TABLE, source
from composite.compiler.emit.stubs import stubs
from composite.compiler.emit.timings import timings
from composite.compiler.emit.wrapper import wrapper
from composite.compiler.tvm.link import LinkError, driver
from composite.compiler.tvm.machine import AARCH64
from composite.kernels import key
from composite.ops.op import CompositeOp
from composite.ops.registry import OPS

# nodelete: the runtime keeps pointers to the kernels that a library registers when it is mapped;
# after a dlclose another library would be mapped at their addresses.
_LINK_FLAGS = [
    *("-shared", "-s", "-Wl,-Bsymbolic", "-Wl,--build-id=none", "-Wl,-rpath,$ORIGIN"),
    "-Wl,-z,nodelete",
]

_FILE = re.compile(r"[\w./-]+\.py(?=[:#\"])")
_MODULE = re.compile(r'(?<=tfr\.module = ")[\w.]+')


def _portable(text: str) -> str:
    """A text with places, in which files are named alike however their modules were imported."""
    text = _FILE.sub(lambda found: sources.file_in_package(found.group()), text)
    return _MODULE.sub(lambda found: sources.module_in_package(found.group()), text)


def described(op: CompositeOp) -> LibraryOp:
    """An op as a library has it: the same bytes wherever its source lies."""
    program = type(op.program)()
    program.CopyFrom(op.program)
    program_marks.rename_places(program, _portable, sources.module_in_package)
    return LibraryOp(
        python_name=op.__name__,
        schema=op.schema,
        doc=op.doc,
        digest=op.digest,
        program=serialize(program),
        mlir=_portable(op.mlir),
        own_gradient=OPS.overrides_gradient(op),
        composes=op.composes,
        replaces=ProgramMarks.of(program).replaces,
    )


class Contents(NamedTuple):
    """What a library is written from.

    Attributes:
        ops: with each op that a body calls.
        kernels: of all machines.
        made_of: the inputs that the manifest names; None for ops that are not in a file.
    """

    ops: Sequence[LibraryOp]
    kernels: Sequence[BuiltKernel]
    made_of: Mapping[str, Any] | None


def write(folder: Path, name: str, contents: Contents, *, with_registration: bool) -> None:
    """Writes all files of a library, and the C source of its registration if that is wanted."""
    ops, kernels = contents.ops, [kernel.description for kernel in contents.kernels]
    own = [kernel for kernel in contents.kernels if not kernel.is_foreign]
    foreign = [kernel for kernel in contents.kernels if kernel.is_foreign]
    # An op that calls one of its own Python name has the name, as in what `composite.load` gives.
    by_name = list({op.python_name: op for op in ops}.values())
    texts = {
        f"{name}.py": wrapper(name, by_name),
        f"{name}.pyi": stubs(name, by_name),
        f"{name}.mlir": SPLIT.join(op.mlir for op in ops),
        f"{name}.md": docs(name, ops, kernels),
    }
    files = {file: text.encode() for file, text in texts.items()}
    objects = {file: data for kernel in own for file, data in kernel.objects.items()}
    registered = registration(name, ops, [kernel.description for kernel in own])
    if with_registration:
        files[f"{name}.c"] = registered.encode()
    files[f"lib{name}.so"] = _link_library(name, registered, objects)
    files[f"lib{name}_kernels.so"] = _standalone(name, ops, own)
    if foreign:
        files[f"lib{name}_kernels.{AARCH64}.so"] = _standalone(name, ops, foreign, driver(AARCH64))
    for file, data in files.items():
        (folder / file).write_bytes(data)
    content = manifest.text(name, ops, kernels, files, contents.made_of)
    (folder / manifest.NAME).write_text(content, encoding="utf-8")
    measured = {k.description.name: k.timing for k in own if k.timing is not None}
    (folder / inputs.TIMINGS).write_text(timings(key.machine(), measured), encoding="utf-8")


def _standalone(
    name: str,
    ops: Sequence[LibraryOp],
    kernels: Sequence[BuiltKernel],
    compiler: str | None = None,
) -> bytes:
    """The library for processes without TensorFlow, by the C compiler of their CPU."""
    described = tables(ops, [kernel.description for kernel in kernels])
    own = {kernel.name for op in described for kernel in op.kernels}
    objects = {
        file: data
        for kernel in kernels
        if kernel.description.name in own
        for file, data in kernel.objects.items()
    }
    return _link(name, source(name, described), objects, [TABLE], [], compiler)


def _link_library(name: str, text: str, objects: Mapping[str, bytes]) -> bytes:
    runtime = [f"-L{native.runtime_folder()}", f"-l:{native.LIBRARY}", "-ldl"]
    exported = [status_symbol(name), program_symbol(name)]
    return _link(name, text, objects, exported, runtime)


def _link(  # noqa: PLR0913, PLR0917 - all that a library is linked from
    name: str,
    text: str,
    objects: Mapping[str, bytes],
    exported: Sequence[str],
    libraries: Sequence[str],
    compiler: str | None = None,
) -> bytes:
    """The bytes of a library. Names are relative and the folder is fresh: no path gets in."""
    compiler = compiler or shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise LinkError(
            "composite.build needs a C compiler, and there is no `cc`: apt install gcc, or set CC"
        )
    with tempfile.TemporaryDirectory(prefix="composite-") as folder, naming(folder):
        where = Path(folder)
        (where / "source.c").write_text(text, encoding="utf-8")
        names = "".join(f"{symbol}; " for symbol in exported)
        (where / "exports.map").write_text(f"{{ global: {names}local: *; }};\n")
        for file, data in objects.items():
            (where / file).write_bytes(data)
        command = [compiler, "-O1", "-fPIC", *_LINK_FLAGS, "-Wl,--version-script=exports.map"]
        command += ["-o", "library.so", "source.c", *sorted(objects), *libraries]
        command += ["-Wl,--as-needed", "-lm"]  # what has no vector form is libm's
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LinkError(
                f"{compiler} could not link the library {name} (exit {done.returncode}):\n"
                f"{(done.stderr or done.stdout).strip()}"
            )
        return (where / "library.so").read_bytes()
