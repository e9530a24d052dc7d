"""Exports kernels of the cache to a file for other machines, and imports them.

The file is a zip with manifest.json and files of the cache under their names in the cache. Only
files that the manifest names are imported. They are checked as the cache checks its own files, and
no name from the zip is used as a path. A matching hash shows that a file is complete, not who wrote
it.

Not for: kernels of a model, which are stored in it (composite/saving/region_kernels.py), and
kernels that authors provide.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from composite.binding import fields, json_text
from composite.binding.kernel_record import KernelRecord
from composite.binding.log import logger
from composite.binding.records import NodeDef
from composite.compiler.tvm import Target
from composite.kernels import cache as caches
from composite.kernels import gpu, toolchain
from composite.kernels import key as keys
from composite.kernels.cache import Cache
from composite.measuring import decisions
from composite.ops import function_op

_FORMAT = 1
_MANIFEST = "manifest.json"
_KEY = re.compile(r"[0-9a-f]{32}")
_TIMING = re.compile(r"([0-9a-f]{32})-[0-9a-f]{12}")
_MADE = (1980, 1, 1, 0, 0, 0)  # so that equal caches give equal files
_DAY = 86400.0


@dataclass(frozen=True)
class CacheReport:
    """The result of an export or an import.

    Attributes:
        file: the file.
        kernels: the number of kernels.
        refusals: the number of calls for which no kernel can be made.
        known: how many of both the cache already had; these are not changed.
        left_out: the number of kernels that were left out, by reason.
    """

    file: Path
    kernels: int
    refusals: int
    known: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        told = [f"{self.file}: {self.kernels} kernels, {self.refusals} refusals"]
        told += [f"{self.known} were there"] if self.known else []
        told += [f"{count} left out: {why}" for why, count in sorted(self.left_out.items())]
        return "; ".join(told)


class _LeftOutError(Exception):
    """The reason why a kernel is left out."""


def export_cache(
    file: str | os.PathLike[str], *, ops: Collection[str] = (), days: float | None = None
) -> CacheReport:
    """Writes kernels of the cache to one file, for machines with the same kind of CPU.

    The file also has the measured times, and the calls that have no kernel. Kernels from other
    versions of the compiler are left out, since they are not used any more.

    Args:
        file: the file to write, a zip.
        ops: the names of the ops whose kernels to export, or "region:" and the last digits of a
            region's name, as in reports; by default all.
        days: if given, only kernels that were used in the last so many days.

    Returns:
        A CacheReport; `print` it.

    Raises:
        OSError: if there is no trusted cache, or the file cannot be written.
    """
    target = Path(file)
    cache = _opened()
    since = 0.0 if days is None else time.time() - days * _DAY
    left_out: Counter[str] = Counter()
    kernels: dict[str, dict[str, str]] = {}
    files: dict[str, bytes] = {}
    for path in cache.files("records"):
        if not _KEY.fullmatch(path.name):
            continue  # provided by an author
        try:
            if path.lstat().st_mtime < since:
                continue
            made, own = _of_cache(cache, path.name)
            if ops and not any(_is_of(made, op) for op in ops):
                continue
            _require_version(made.toolchain)
        except _LeftOutError as reason:
            left_out[str(reason)] += 1
            continue
        except (OSError, ValueError) as error:
            logger.warning("kernel %s is not exported: %s", path.name, error)
            left_out["damaged"] += 1
            continue
        files |= own
        kernels[path.name] = {"op": made.op, "target": made.target, "device": made.device}
    refusals = list(_notes_to_export(cache, kernels, files))
    manifest = {
        "format": _FORMAT,
        "records": fields.VERSION,
        "toolchain": dict(toolchain.toolchain()),
        "count": len(kernels),
        "kernels": kernels,
        "refusals": refusals,
    }
    _write(target, json.dumps(manifest, indent=1, sort_keys=True).encode(), files)
    return CacheReport(target, len(kernels), len(refusals), left_out=dict(left_out))


def import_cache(file: str | os.PathLike[str]) -> CacheReport:
    """Imports kernels that `export_cache` wrote into this user's cache.

    Kernels are machine code, which calls of this user will run: import files only from people whom
    you trust. Each kernel is checked against its hash. Kernels that the cache already has are not
    changed. Kernels from other versions of the compiler, or for other kinds of CPU, are left out
    and counted.

    Args:
        file: the file.

    Returns:
        A CacheReport; `print` it.

    Raises:
        ValueError: if `export_cache` did not write the file.
        OSError: if the file cannot be read, or there is no trusted cache that can be written.
    """
    source = Path(file)
    cache = _opened()
    taken, refusals, known = 0, 0, 0
    left_out: Counter[str] = Counter()
    with _archive(source) as archive:
        manifest = _manifest(source, archive)
        for key in sorted(manifest["kernels"]):
            try:
                record, library = _checked(archive, key)
            except _LeftOutError as reason:
                left_out[str(reason)] += 1
                continue
            except ValueError as error:
                logger.warning("%s: kernel %s is not imported: %s", source, key, error)
                left_out["damaged"] += 1
                continue
            if cache.load(key) is not None:
                known += 1
            else:
                cache.put(key, record, library)
                taken += 1
        for folder, name, content in _notes(archive, manifest):
            if cache.has_note(folder, name):
                known += folder == "refusals"
            else:
                cache.put_note(folder, name, content)
                refusals += folder == "refusals"
    cache.trim()
    return CacheReport(source, taken, refusals, known, dict(left_out))


def _opened() -> Cache:
    """The user's cache folder. PermissionError if it cannot be trusted."""
    try:
        return Cache(caches.default_root())
    except caches.Untrusted as error:
        raise PermissionError(errno.EACCES, f"the kernel cache is not used: {error}") from None


def _is_of(made: KernelRecord, op: str) -> bool:
    kind, is_region, digits = op.partition(":")
    if is_region:
        return kind == "region" and made.op == function_op.NAME and made.program.endswith(digits)
    return made.op == op


def _of_cache(cache: Cache, key: str) -> tuple[KernelRecord, dict[str, bytes]]:
    """A kernel of the cache, and its files by name. Raises as `_whole`."""
    assert cache.root is not None, "it was opened"
    content = caches.read(cache.root / "records", key) or b""
    name = _library(content)
    library = caches.read(cache.root / "objects", name)
    if library is None:
        raise _LeftOutError("its library was removed, as what was used longest ago is")
    made = _whole(content, library)
    return made, {f"records/{key}": content, f"objects/{name}": library}


def _library(content: bytes) -> str:
    """The library file that a record names. ValueError if the record is damaged."""
    digest = caches.unhashed(content, "records").partition(b"\n")[0].decode()
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise ValueError("it names no library")
    return f"{digest}.so"


def _whole(content: bytes, library: bytes) -> KernelRecord:
    """The kernel of a record and a library. ValueError unless all hashes match."""
    digest = hashlib.sha256(library).hexdigest()
    try:
        made = KernelRecord.parse(NodeDef.FromString(_record(content)))
    except DecodeError as error:
        raise ValueError(f"it is no record: {error}") from None
    if _library(content) != f"{digest}.so" or made.library_sha256 != digest:
        raise ValueError("its library has another hash")
    return made


def _record(content: bytes) -> bytes:
    return caches.unhashed(content, "records").partition(b"\n")[2]


def _require_version(made_by: str) -> None:
    if made_by != keys.toolchain_key():
        raise _LeftOutError("made by another version of the compiler")


def _require_target(made: KernelRecord) -> None:
    if made.device == "CPU":
        ours = replace(Target.host(), invariant=made.invariant).key
        if made.target != ours:
            raise _LeftOutError(f"for {made.target} (level and cores), this machine is {ours}")
    elif not gpu.is_here(made.device):
        raise _LeftOutError(f"for a GPU that is not here, {made.device}")


def _notes_to_export(
    cache: Cache, kernels: Collection[str], files: dict[str, bytes]
) -> Iterator[str]:
    """Adds measured times and refusals to the files. Returns the keys of the refusals."""
    assert cache.root is not None, "it was opened"
    for folder in ("timings", "refusals"):
        for path in cache.files(folder):
            try:
                content = caches.read(cache.root / folder, path.name) or b""
                if not _is_note(folder, path.name, caches.unhashed(content, folder), kernels):
                    continue
            except (OSError, ValueError) as error:
                logger.warning("%s %s is not exported: %s", folder, path.name, error)
                continue
            files[f"{folder}/{path.name}"] = content
            if folder == "refusals":
                yield path.name


def _is_note(folder: str, name: str, content: bytes, kernels: Collection[str]) -> bool:
    """Whether a note has timings of a kernel, or a refusal by this compiler. ValueError."""
    if folder == "timings":
        found = _TIMING.fullmatch(name)
        is_known = found is not None and found[1] in kernels
        return is_known and decisions.from_json(content) is not None
    known = json_text.parsed(content)
    made_by = known.get("toolchain") if isinstance(known, dict) else None
    return bool(_KEY.fullmatch(name)) and made_by == keys.toolchain_key()


def _write(target: Path, manifest: bytes, files: Mapping[str, bytes]) -> None:
    """Writes the zip atomically."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo(_MANIFEST, _MADE), manifest)
            for name in sorted(files):
                info = zipfile.ZipInfo(name, _MADE)
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, files[name])
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _archive(source: Path) -> Iterator[zipfile.ZipFile]:
    try:
        archive = zipfile.ZipFile(source)
    except zipfile.BadZipFile:
        raise ValueError(f"{source} is no file that `composite cache export` wrote") from None
    with archive:
        yield archive


def _manifest(source: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    """The manifest. ValueError if it is invalid, or has another version."""
    try:
        found: dict[str, Any] = json_text.parsed(_read(archive, _MANIFEST))
        version = found["format"]
        is_one = version != _FORMAT or isinstance(found["kernels"], dict | list)
    except (KeyError, TypeError, ValueError):
        is_one, version = False, None
    if not is_one:
        raise ValueError(f"{source} is no file that `composite cache export` wrote")
    if version != _FORMAT:
        raise ValueError(f"{source} has format {version}, and this version reads {_FORMAT}")
    return found


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    """A file of the zip. ValueError if it is missing, damaged or too large."""
    try:
        info = archive.getinfo(name)
        if info.file_size > caches.LARGEST:
            raise ValueError(f"{name} has {info.file_size} bytes")
        return archive.read(info)
    except (KeyError, RuntimeError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise ValueError(f"{name}: {error}") from None


def _checked(archive: zipfile.ZipFile, key: str) -> tuple[bytes, bytes]:
    """The record and the library of a kernel. ValueError if it is damaged; _LeftOutError."""
    if not _KEY.fullmatch(key):
        raise ValueError("that is no name of a kernel")
    content = _read(archive, f"records/{key}")
    library = _read(archive, f"objects/{_library(content)}")
    made = _whole(content, library)
    _require_version(made.toolchain)
    _require_target(made)
    return _record(content), library


def _notes(
    archive: zipfile.ZipFile, manifest: Mapping[str, Any]
) -> Iterator[tuple[str, str, bytes]]:
    """Undamaged timings and refusals of the zip that can be used: folder, name and content."""
    for name in archive.namelist():
        folder, _, own = name.partition("/")
        if folder not in ("timings", "refusals"):
            continue
        try:
            content = caches.unhashed(_read(archive, name), folder)
            if _is_note(folder, own, content, manifest["kernels"]):
                yield folder, own, content
        except ValueError as error:
            logger.warning("%s is not imported: %s", name, error)
