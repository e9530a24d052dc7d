"""`composite.build`: a folder that carries ops into a process with no compiler.

The pipeline in plain lines: collect the ops and whatever they call, compile a kernel for each
stated signature, check and measure it, write the texts, link the library, move the folder into
place. Bytes depend on the sources, the toolchain and the target alone; measured times go to
timings.json.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from composite.aot import build_options, enumeration, inputs, manifest, prebuild, sources
from composite.aot.build_options import Options, Signatures
from composite.aot.loading import SPLIT
from composite.aot.replacing import naming, replaced
from composite.aot.signatures import Stated, of_ops, stated
from composite.binding import native
from composite.binding.records import CONSTANTS, NodeDef, serialize
from composite.compiler.emit.docs import docs
from composite.compiler.emit.library import LibraryOp
from composite.compiler.emit.registration import program_symbol, registration, status_symbol
from composite.compiler.emit.stubs import stubs
from composite.compiler.emit.timings import read, timings
from composite.compiler.emit.wrapper import wrapper
from composite.compiler.tvm.link import LinkError
from composite.compiler.tvm.target import Target
from composite.kernels import key
from composite.kernels.decisions import Decision
from composite.kernels.tuned import Database
from composite.ops.op import CompositeOp
from composite.ops.registry import OPS

_LINK_FLAGS = ["-shared", "-s", "-Wl,-Bsymbolic", "-Wl,--build-id=none", "-Wl,-rpath,$ORIGIN"]

Progress = Callable[[int, int, str], None]


class Built(NamedTuple):
    """What `run` did.

    Attributes:
        folder: the library.
        is_new: False when it was there already, and nothing had changed.
        notes: for people: which kernels there are not, and why.
    """

    folder: Path
    is_new: bool
    notes: tuple[str, ...] = ()


def build(  # noqa: PLR0913 - what a library is built with
    source: str | os.PathLike[str] | CompositeOp | Iterable[CompositeOp],
    out: str | os.PathLike[str],
    *,
    name: str | None = None,
    signatures: Signatures | None = None,
    targets: Sequence[str] = (),
    tuned: str | os.PathLike[str] | None = None,
) -> Path:
    """Writes a library of ops and kernels to the folder `out`, replacing a library that is there.

    Args:
        source: a Python file that defines composite ops, or the ops. The ops that they call are
            included.
        out: the folder.
        name: the name of the library, an identifier; by default the file's.
        signatures: for an op's Python name, the calls to compile kernels for: keyword arguments as
            in `CompositeOp.add_signature`, whose calls are compiled as well. Calls that no kernel
            covers run TensorFlow's ops.
        targets: levels of the x86-64 psABI to compile kernels for, such as "x86-64-v3"; by default
            the highest that this machine has. Kernels are checked and measured here, so this
            machine must have each level.
        tuned: a file that `composite.tune` wrote, with choices for the kernels; by default none.

    Returns:
        The folder.

    Raises:
        ValueError: if no kernel can be compiled for a signature, if this machine does not have a
            target, or if the file `tuned` is not a tuning database.
        FileExistsError: if `out` exists and is not a library.
        OSError: if it cannot be written.
        RuntimeError: if there is no C compiler, or it fails.

    If an error is raised, `out` still has its former contents.
    """
    database = None if tuned is None else Path(tuned)
    options = Options(name, signatures or {}, tuple(targets), tuned=database)
    return run(source, Path(out), options).folder


def run(
    source: str | os.PathLike[str] | CompositeOp | Iterable[CompositeOp],
    target: Path,
    options: Options,
    *,
    progress: Progress = lambda *_: None,
    force: bool = False,
) -> Built:
    """`build`, with its options together; nothing where a library of them is there, unless forced.

    `progress(i, n, what)` is told of each of n kernels.
    """
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    if not force and path is not None and inputs.is_current(target, path, options.plain(path)):
        return Built(target, is_new=False)
    found = sources.find(source)
    name = options.name or (path.stem if path else None)
    if not name or not name.isidentifier():
        raise ValueError(f"composite.build: name={name!r} is not an identifier")
    machines = build_options.targets(options.targets)
    _check_replaceable(target)
    ordered = sources.with_callees(found.ops)
    wanted, notes = _wanted(ordered, options)
    made_of = None
    if path is not None and found.module is not None and found.is_as_on_disk():
        made_of = inputs.described(path, sources.files(found.module), options.plain(path))
    described = [_described(op) for op in ordered]
    plan = prebuild.Plan(_before(target), _tuned(options))
    built = _kernels(wanted, machines, plan, progress, notes)
    with replaced(target) as folder:
        _write(folder, options._replace(name=name), described, built, made_of)
    return Built(target, is_new=True, notes=tuple(notes))


class _Wanted(NamedTuple):
    op: CompositeOp
    arguments: Mapping[str, Any]
    must: bool  # or there is no kernel for it, and a note


def _kernels(
    wanted: Sequence[_Wanted],
    machines: Sequence[Target],
    plan: prebuild.Plan,
    progress: Progress,
    notes: list[str],
) -> list[prebuild.BuiltKernel]:
    """A kernel for each call and machine, and one more where inputs are constants; each once."""
    built: dict[str, prebuild.BuiltKernel] = {}
    for i, (op, call, must) in enumerate(wanted):
        for machine in machines:
            progress(i * len(machines), len(wanted) * len(machines), f"{op.__name__}{_short(call)}")
            constants = False
            try:
                for request in prebuild.requests(op, call):
                    name, constants = prebuild.name(request, machine), CONSTANTS in request.attr
                    if name in built:
                        continue
                    built[name] = prebuild.kernel(op, request, machine, plan)
                    if must and built[name].has_loop:
                        ones = prebuild.of_one(request)
                        ones = [one for one in ones if prebuild.name(one, machine) not in built]
                        built |= _of_one(op, ones, machine, plan, notes)
            except ValueError as error:
                # Without a kernel for constants the one for any inputs serves.
                if must and not constants:
                    raise
                notes.append(str(error))
    return list(built.values())


def _of_one(
    op: CompositeOp,
    ones: Iterable[NodeDef],
    machine: Target,
    plan: prebuild.Plan,
    notes: list[str],
) -> dict[str, prebuild.BuiltKernel]:
    """Kernels of a stated call's loop with one row or step: that is another program.

    The just-in-time compiler makes them when such a call comes.
    """
    built = {}
    for one in ones:
        try:
            built[prebuild.name(one, machine)] = prebuild.kernel(op, one, machine, plan)
        except ValueError as error:  # the stated kernel serves
            notes.append(str(error))
    return built


def _wanted(ops: Sequence[CompositeOp], options: Options) -> tuple[list[_Wanted], list[str]]:
    signatures, notes = options.signatures, []
    if options.of_a_run:
        signatures, others = of_ops(signatures, ops)
        notes = [f"calls of other ops are left out: {', '.join(others)}"] if others else []
    calls: list[Stated] = stated(ops, signatures)
    own = [op for op in ops if op.digest not in options.elsewhere]
    wanted = [_Wanted(op, call, must=True) for op, call in calls if op in own]
    for op in own:
        if options.kinds and all(one is not op for one, _ in calls):
            kinds = enumeration.kinds(op, options.kinds)
            wanted += [_Wanted(op, call, must=False) for call in kinds.calls]
            notes += [f"{op.__name__}: {kinds.note}"] if kinds.note else []
    return wanted, notes


def _short(call: Mapping[str, Any]) -> str:
    return "(" + ", ".join(f"{name}={value}" for name, value in call.items()) + ")"


def _write(
    folder: Path,
    options: Options,
    described: Sequence[LibraryOp],
    built: Sequence[prebuild.BuiltKernel],
    made_of: Mapping[str, Any] | None,
) -> None:
    name = options.name
    assert name is not None  # `run` has found one
    kernels = [kernel.description for kernel in built]
    texts = {
        f"{name}.py": wrapper(name, described),
        f"{name}.pyi": stubs(name, described),
        f"{name}.mlir": SPLIT.join(op.mlir for op in described),
        f"{name}.md": docs(name, described, kernels),
    }
    files = {file: text.encode() for file, text in texts.items()}
    objects = {file: data for kernel in built for file, data in kernel.objects.items()}
    registered = registration(name, described, kernels)
    if options.registration:
        files[f"{name}.c"] = registered.encode()
    files[f"lib{name}.so"] = _link(name, registered, objects)
    for file, data in files.items():
        (folder / file).write_bytes(data)
    content = manifest.text(name, described, kernels, files, made_of)
    (folder / manifest.NAME).write_text(content, encoding="utf-8")
    measured = {k.description.name: k.timing for k in built}
    (folder / inputs.TIMINGS).write_text(timings(key.machine(), measured), encoding="utf-8")


def _tuned(options: Options) -> list[Database]:
    return [] if options.tuned is None else [Database.read(options.tuned)]


def _before(target: Path) -> dict[str, Decision]:
    """What was decided when the library that is there was built on this machine."""
    path = target / inputs.TIMINGS
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return prebuild.decisions_of(read(text, key.machine()))


_FILE = re.compile(r"[\w./-]+\.py(?=[:#\"])")
_MODULE = re.compile(r'(?<=tfr\.module = ")[\w.]+')


def _portable(text: str) -> str:
    """A text with places, in which files are named alike however their modules were imported."""
    text = _FILE.sub(lambda found: sources.file_in_package(found.group()), text)
    return _MODULE.sub(lambda found: sources.module_in_package(found.group()), text)


def _described(op: CompositeOp) -> LibraryOp:
    program = type(op.program)()
    program.CopyFrom(op.program)
    for function in program.function:
        for attrs in (function.attr, *(node.attr for node in function.node_def)):
            for name in ("_place", "_origin", "_loc"):
                if name in attrs:
                    attrs[name].s = _portable(attrs[name].s.decode()).encode()
            if "_module" in attrs:
                name = attrs["_module"].s.decode()
                attrs["_module"].s = sources.module_in_package(name).encode()
    return LibraryOp(
        python_name=op.__name__,
        schema=op.schema,
        doc=op.__doc__ or "",
        digest=op.digest,
        program=serialize(program),
        mlir=_portable(op.mlir),
        own_gradient=OPS.overrides_gradient(op),
        composes=op.composes,
        replaces=op.program.function[0].attr["_replaces"].b if op.composes else False,
    )


def _link(name: str, source: str, objects: Mapping[str, bytes]) -> bytes:
    """The bytes of the library. Names are relative and the folder is fresh: no path gets in."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise LinkError(
            "composite.build needs a C compiler, and there is no `cc`: apt install gcc, or set CC"
        )
    with tempfile.TemporaryDirectory(prefix="composite-") as folder, naming(folder):
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
            raise LinkError(
                f"{compiler} could not link lib{name}.so (exit {done.returncode}):\n"
                f"{(done.stderr or done.stdout).strip()}"
            )
        return (where / "library.so").read_bytes()


def _check_replaceable(target: Path) -> None:
    """Before anything is compiled: whether a library may be written there."""
    there = next(path for path in target.absolute().parents if path.exists())
    if not there.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(there))
    if not os.access(there, os.W_OK | os.X_OK):
        read_only = os.statvfs(there).f_flag & os.ST_RDONLY
        number = errno.EROFS if read_only else errno.EACCES
        raise OSError(number, os.strerror(number), str(there))
    if not target.exists() or (target / manifest.NAME).is_file():
        return
    if not target.is_dir() or any(target.iterdir()):
        raise FileExistsError(f"{target} is no library of composite.build: it is left as it is")
