"""Kernels of the cache in a file: what goes into it, what is taken from it, and what is not."""

from __future__ import annotations

import json
import os
import re
import stat
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import composite
from composite.binding.kernel_record import KernelRecord
from composite.cli.main import main
from composite.compiler.tvm import Target
from composite.kernels import cache as caches
from composite.kernels import key as keys
from composite.kernels.cache import Cache
from composite.measuring import decisions
from composite.measuring.decisions import Decision, Point, Times
from composite.ops import function_op
from tests.conftest import RunPython

REGION = "__composite_region_0123456789abcdef"


def key(number: int) -> str:
    return f"{number:032x}"


def put(cache: Cache, number: int, **facts: Any) -> bytes:
    """An entry of the cache; returns its library."""
    library = f"library {number}".encode()
    facts = {
        "program": "p",
        "in_shapes": ((4,),),
        "out_shapes": ("4",),
        "isa": Target.host().isa,
        "target": Target.host().key,
        "device": "CPU",
        "toolchain": keys.toolchain_key(),
        "op": "Relu",
        "name": f"kernel_{number}",
    } | facts
    made = KernelRecord(**facts, library_sha256=keys.sha256(library))
    cache.store(key(number), made.serialize(), library)
    return library


def timings() -> bytes:
    times = Times(1.0, 2.0, 0.5, 0.4, 0.6)
    return decisions.to_json(Decision(4, (Point(4, times, kernel_wins=True),))).encode()


def refusal(made_by: str) -> bytes:
    return json.dumps({"kind": "mismatch", "reason": "so", "toolchain": made_by}).encode()


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Cache]:
    """`at("here")` is the user's cache from then on."""

    def chosen(name: str) -> Cache:
        monkeypatch.setenv(caches.ENVIRONMENT, str(tmp_path / name))
        return Cache(tmp_path / name)

    return chosen


def test_what_is_exported_is_in_the_other_cache(at: Callable[[str], Cache], tmp_path: Path) -> None:
    file, cache = tmp_path / "kernels.zip", at("here")
    library = put(cache, 1)
    put(cache, 2, op="Tanh")
    put(cache, 3, toolchain="another")
    put(cache, 4, target="x86-64-v9-64")
    machine = "0123456789ab"
    cache.store_timings(key(1), machine, timings())
    cache.store_timings(key(3), machine, timings())
    cache.store_refusal(key(5), refusal(keys.toolchain_key()))
    cache.store_refusal(key(6), refusal("another"))
    cache.store("a" * 64, b"", b"given by an author")
    written = composite.export_cache(file)
    assert str(written) == (
        f"{file}: 3 kernels, 1 refusals; 1 left out: made by another version of the compiler"
    )
    content = file.read_bytes()
    composite.export_cache(file)
    assert file.read_bytes() == content
    assert [one.name for one in tmp_path.iterdir() if "zip" in one.name] == [file.name]

    there = at("there")
    taken = composite.import_cache(file)
    told = f"for x86-64-v9-64 (level and cores), this machine is {Target.host().key}"
    assert (taken.kernels, taken.refusals, taken.known) == (2, 1, 0)
    assert taken.left_out == {told: 1}
    found = there.load(key(1))
    assert found is not None
    assert found[1].read_bytes() == library
    assert found == (cache.load(key(1))[0], found[1])  # type: ignore[index]
    assert there.load(key(3)) is there.load(key(4)) is None
    assert there.load_timings(key(1), machine) == timings()
    assert there.load_timings(key(3), machine) is None
    assert there.refusals() == [refusal(keys.toolchain_key())]
    for path in (tmp_path / "there").rglob("*"):
        assert not path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def test_kernels_are_selected(at: Callable[[str], Cache], tmp_path: Path) -> None:
    cache = at("here")
    put(cache, 1)
    put(cache, 2, op="Tanh")
    put(cache, 3, op=function_op.NAME, program=REGION)
    old = time.time() - 3 * 86400
    assert cache.root is not None
    os.utime(cache.root / "records" / key(2), (old, old))

    def exported(**selection: Any) -> set[str]:
        composite.export_cache(tmp_path / "k.zip", **selection)
        with zipfile.ZipFile(tmp_path / "k.zip") as archive:
            manifest = json.loads(archive.read("manifest.json"))
        assert manifest["count"] == len(manifest["kernels"])
        return {one["op"] for one in manifest["kernels"].values()}

    every = {"Relu", "Tanh", function_op.NAME}
    assert exported() == every
    assert exported(days=2) == every - {"Tanh"}
    assert exported(days=4) == every
    assert exported(ops=["Tanh", "Relu"]) == {"Tanh", "Relu"}
    assert exported(ops=["region:89abcdef"]) == {function_op.NAME}
    assert exported(ops=["region:00000000"]) == set()


def test_what_is_there_stays(at: Callable[[str], Cache], tmp_path: Path) -> None:
    file, machine = tmp_path / "kernels.zip", "0123456789ab"
    cache = at("here")
    put(cache, 1, strategy="old")
    put(cache, 2)
    cache.store_timings(key(1), machine, timings())
    composite.export_cache(file)
    there = at("there")
    put(there, 1, strategy="new")
    newer = timings().replace(b"2.0", b"3.0")
    there.store_timings(key(1), machine, newer)
    put(there, 2)
    assert there.root is not None
    (there.root / "records" / key(2)).write_bytes(b"damaged")
    taken = composite.import_cache(file)
    assert (taken.kernels, taken.known) == (1, 1)
    assert b"new" in there.load(key(1))[0]  # type: ignore[index]
    assert there.load_timings(key(1), machine) == newer
    assert there.load(key(2)) is not None


def _rewritten(file: Path, change: Callable[[dict[str, bytes]], None]) -> None:
    with zipfile.ZipFile(file) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def _other_bytes(prefix: str) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        name = next(name for name in files if name.startswith(prefix))
        files[name] = files[name][:-1] + b"?"

    return change


def _without(prefix: str) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        del files[next(name for name in files if name.startswith(prefix))]

    return change


def _another_library(files: dict[str, bytes]) -> None:
    """A record that names, with all hashes right, a library that it was not made with."""
    name = next(name for name in files if name.startswith("records/"))
    record = caches.unhashed(files[name], "records").partition(b"\n")[2]
    library = b"another"
    rest = keys.sha256(library).encode() + b"\n" + record
    files[name] = keys.sha256(rest).encode() + b"\n" + rest
    files[f"objects/{keys.sha256(library)}.so"] = library


def _no_record(files: dict[str, bytes]) -> None:
    name = next(name for name in files if name.startswith("records/"))
    rest = caches.unhashed(files[name], "records").partition(b"\n")[0] + b"\n\xff\xff"
    files[name] = keys.sha256(rest).encode() + b"\n" + rest


def _outside(files: dict[str, bytes]) -> None:
    """Names that lead out of the folder, in the manifest and in the zip."""
    manifest = json.loads(files["manifest.json"])
    (own,) = manifest["kernels"]
    manifest["kernels"] = {"../../escaped": manifest["kernels"][own]}
    files["manifest.json"] = json.dumps(manifest).encode()
    files["records/../../escaped"] = files[f"records/{own}"]
    content = refusal(keys.toolchain_key())
    files["refusals/../../escaped"] = keys.sha256(content).encode() + b"\n" + content


@pytest.mark.parametrize(
    "change",
    [
        *(_other_bytes("records/"), _other_bytes("objects/"), _without("records/")),
        *(_without("objects/"), _another_library, _no_record, _outside),
    ],
)
def test_what_is_not_whole_is_left_out(
    at: Callable[[str], Cache], tmp_path: Path, change: Callable[[dict[str, bytes]], None]
) -> None:
    file = tmp_path / "kernels.zip"
    put(at("here"), 1)
    composite.export_cache(file)
    _rewritten(file, change)
    there = at("there")
    taken = composite.import_cache(file)
    assert (taken.kernels, taken.refusals, taken.left_out) == (0, 0, {"damaged": 1})
    assert there.load(key(1)) is None
    assert not list(tmp_path.rglob("*escaped*"))


def test_every_cut_of_a_file_is_refused(at: Callable[[str], Cache], tmp_path: Path) -> None:
    file = tmp_path / "kernels.zip"
    put(at("here"), 1)
    composite.export_cache(file)
    at("there")
    content = file.read_bytes()
    refused = f"{file} is no file that `composite cache export` wrote"
    for size in range(0, len(content), 37):
        file.write_bytes(content[:size])
        with pytest.raises(ValueError, match=re.escape(refused)):
            composite.import_cache(file)
    for place in range(0, len(content), 23):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        try:
            taken = composite.import_cache(file)
        except ValueError:
            continue
        assert taken.kernels + taken.known + sum(taken.left_out.values()) == 1


def test_files_that_are_none(at: Callable[[str], Cache], tmp_path: Path) -> None:
    at("here")
    file = tmp_path / "kernels.zip"
    with pytest.raises(FileNotFoundError):
        composite.import_cache(file)
    for manifest, told in (
        (b"{}", "is no file that"),
        (b"[1]", "is no file that"),
        (b'{"format": 1, "kernels": 3}', "is no file that"),
        (b'{"format": 2}', "has format 2, and this version reads 1"),
    ):
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("manifest.json", manifest)
        with pytest.raises(ValueError, match=told):
            composite.import_cache(file)


def test_the_command_line(at: Callable[[str], Cache], tmp_path: Path) -> None:
    def run(*words: Any) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["cache", *map(str, words)])
        return done.exit_code, done.output

    file, cache = tmp_path / "kernels.zip", at("here")
    put(cache, 1)
    put(cache, 2, op="Tanh")
    assert run("export", file, "--op", "Tanh") == (0, f"{file}: 1 kernels, 0 refusals\n")
    at("there")
    assert run("import", file) == (0, f"{file}: 1 kernels, 0 refusals\n")
    assert run("import", file) == (0, f"{file}: 0 kernels, 0 refusals; 1 were there\n")
    file.write_text("no zip")
    code, told = run("import", file)
    assert (code, "is no file that `composite cache export` wrote" in told) == (1, True)
    (tmp_path / "there").chmod(0o777)
    code, told = run("import", file)
    assert (code, "others may write to" in told) == (4, True)


_ACCELERATED = """
import sys
import numpy as np
import tensorflow as tf
import composite

composite.{command}
model = tf.keras.Sequential([
    tf.keras.Input((24,)), tf.keras.layers.Dense(32, "gelu"), tf.keras.layers.LayerNormalization()
])
x = tf.constant(np.linspace(-1, 1, 96).reshape(4, 24), tf.float32)
fast = composite.accelerate(model, x)
np.testing.assert_allclose(fast(x), model(x), rtol=1e-3, atol=1e-4)
fast(x[:1])
composite.wait()
print(composite.stats()["answered"] > 0, composite.stats()["compiles"])
"""


def test_a_machine_with_an_empty_cache_compiles_nothing(
    tmp_path: Path, run_python: RunPython
) -> None:
    file = tmp_path / "kernels.zip"

    def printed(command: str, folder: str) -> list[str]:
        env = {caches.ENVIRONMENT: str(tmp_path / folder)}
        return run_python(_ACCELERATED.format(command=command), env=env).stdout.split()

    has_kernels, compiled = printed("stats()", "here")
    assert (has_kernels, int(compiled) > 0) == ("True", True)
    run_python(
        f"import composite; print(composite.export_cache({str(file)!r}))",
        env={caches.ENVIRONMENT: str(tmp_path / "here")},
    )
    assert printed(f"import_cache({str(file)!r})", "there") == ["True", "0"]
