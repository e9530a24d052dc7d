"""`composite.build`: a folder that carries ops into a process with no compiler.

The pipeline in plain lines: collect the ops and whatever they call, compile a kernel for each
stated signature, check and measure it, write the texts, link the library, move the folder into
place. Bytes depend on the sources, the toolchain and the target alone; measured times go to
timings.json.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from composite.aot import (
    build_options,
    enumeration,
    inputs,
    manifest,
    prebuild,
    sources,
    stated_calls,
    writing,
)
from composite.aot.build_options import BuildTarget, Options, Signatures
from composite.aot.replacing import replaced
from composite.aot.signatures import Stated, of_ops, stated
from composite.binding.kernel_request import KernelRequest
from composite.compiler.emit.timings import read
from composite.compiler.tvm.target import Target
from composite.kernels import emulated, key
from composite.kernels.tuned import Database
from composite.measuring.decisions import Decision
from composite.ops.op import CompositeOp
from composite.progress import activity
from composite.progress.event import Listener


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
    numerics: str = "fast",
    progress: Listener | None = None,
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
        targets: what to compile kernels for: levels of the x86-64 psABI, such as "x86-64-v3";
            "cpu", which is the highest of them that this machine has; levels of GPUs, such as
            "cuda:sm_90"; and "aarch64". By default "cpu". Kernels are checked and measured here, so
            this machine must have each level of CPUs, but for "aarch64": kernels for it are for
            processes without TensorFlow, and are checked under an emulator. Those for GPUs that
            this machine does not have are checked and measured where the library is loaded.
        tuned: a file that `composite.tune` wrote, with choices for the kernels; by default none.
        numerics: "fast"; or "invariant", for kernels that calls with numerics="invariant" run, and
            no others do.
        progress: is called with ProgressEvents, a part for each kernel. Without it, standard error
            shows them if it is a terminal.

    Returns:
        The folder.

    Raises:
        ValueError: for other `numerics`, if there are no ops, if no kernel can be compiled for a
            signature, if this machine's CPU does not have a target, or if the file `tuned` is not a
            tuning database.
        TypeError: if something in `source` is not an op.
        FileExistsError: if `out` exists and is not a library.
        OSError: if it cannot be written.
        RuntimeError: if there is no C compiler, or it fails.

    If an error is raised, `out` still has its former contents.
    """
    database = None if tuned is None else Path(tuned)
    if numerics not in ("fast", "invariant"):
        raise ValueError(f"composite.build: numerics={numerics!r} is not 'fast' or 'invariant'")
    options = Options(name, signatures or {}, tuple(targets), tuned=database, numerics=numerics)
    return run(source, Path(out), options, progress=progress).folder


def run(
    source: str | os.PathLike[str] | CompositeOp | Iterable[CompositeOp],
    target: Path,
    options: Options,
    *,
    progress: Listener | None = None,
    force: bool = False,
) -> Built:
    """`build`, with its options together.

    It makes nothing where a library of the same is there, unless forced.
    """
    with activity.told(f"build {target.name}", progress):
        return _run(source, target, options, force=force)


def _run(
    source: str | os.PathLike[str] | CompositeOp | Iterable[CompositeOp],
    target: Path,
    options: Options,
    *,
    force: bool,
) -> Built:
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    if not force and path is not None and inputs.is_current(target, path, options.plain(path)):
        return Built(target, is_new=False)
    activity.step("import")
    found = sources.find(source)
    name = options.name or (path.stem if path else None)
    if not name or not name.isidentifier():
        raise ValueError(f"composite.build: name={name!r} is not an identifier")
    targets = build_options.build_targets(options.targets, options.numerics)
    if any(one.target.is_foreign for one in targets) and (what := emulated.missing()):
        raise ValueError(what)
    _check_replaceable(target)
    ordered = sources.with_callees(found.ops)
    wanted, notes = _wanted(ordered, options)
    made_of = None
    if path is not None and found.module is not None and found.is_as_on_disk():
        made_of = inputs.described(path, sources.files(found.module), options.plain(path))
    described = [writing.described(op) for op in ordered]
    plan = prebuild.Plan(_before(target), _tuned(options))
    built = _kernels(wanted, targets, plan, notes)
    activity.step("link")
    notes += _unchecked(built)
    with replaced(target) as folder:
        contents = writing.Contents(described, built, made_of)
        writing.write(folder, name, contents, with_registration=options.registration)
    return Built(target, is_new=True, notes=tuple(notes))


class _Wanted(NamedTuple):
    op: CompositeOp
    arguments: Mapping[str, Any]
    must: bool  # or there is no kernel for it, and a note


def _kernels(
    wanted: Sequence[_Wanted],
    targets: Sequence[BuildTarget],
    plan: prebuild.Plan,
    notes: list[str],
) -> list[prebuild.BuiltKernel]:
    """A kernel for each call and target, and one more where inputs are constants; each once."""
    built: dict[str, prebuild.BuiltKernel] = {}
    done = 0
    for op, call, must in wanted:
        for target, device in targets:
            activity.part(f"{op.__name__}{_short(call)}", done, len(wanted) * len(targets))
            done += 1
            constants = False
            try:
                for plain in stated_calls.requests(op, call, device):
                    stated = replace(plain, invariant=target.invariant)
                    constants = bool(stated.constants)
                    request = prebuild.sized(op, stated, target)
                    name = prebuild.name(op, request, target)
                    if name in built:
                        continue
                    built[name] = prebuild.kernel(op, request, target, plan)
                    if must and built[name].has_loop:
                        built |= _of_one(op, request, target, plan, built, notes)
            except ValueError as error:
                # Without a kernel for constants the one for any inputs serves.
                if must and not constants:
                    raise
                notes.append(str(error))
    return list(built.values())


def _of_one(  # noqa: PLR0913, PLR0917 - what `_kernels` has
    op: CompositeOp,
    stated: KernelRequest,
    target: Target,
    plan: prebuild.Plan,
    known: Mapping[str, prebuild.BuiltKernel],
    notes: list[str],
) -> dict[str, prebuild.BuiltKernel]:
    """Kernels of a stated call's loop with one row or step: that is another program.

    The just-in-time compiler makes them when such a call comes.
    """
    built = {}
    for one in stated_calls.of_one(stated):
        try:
            name = prebuild.name(op, one, target)
            if name not in known:
                built[name] = prebuild.kernel(op, one, target, plan)
        except ValueError as error:  # the stated kernel serves
            notes.append(str(error))
    return built


def _unchecked(built: Sequence[prebuild.BuiltKernel]) -> list[str]:
    names = [one.description.name for one in built if one.is_unchecked]
    if not names:
        return []
    return [
        f"kernels of GPUs that are not here were not checked: {', '.join(names)}. A Python process "
        "that loads the library on such a GPU checks and measures them at their first calls"
    ]


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


def _tuned(options: Options) -> list[Database]:
    return [] if options.tuned is None else [Database.read(options.tuned)]


def _before(target: Path) -> dict[str, Decision]:
    """What was decided when the library that is there was built on this machine."""
    path = target / inputs.TIMINGS
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return prebuild.decisions_of(read(text, key.machine()))


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
