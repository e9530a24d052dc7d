"""A kernel file that cannot be trusted or used: refused before it is mapped, the expansion runs."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.node_def_pb2 import NodeDef

from composite.kernels import memory
from tests.conftest import Mounts
from tests.runtime import kernel_support as k

pytestmark = pytest.mark.usefixtures("kernel_ops")

SHAPES = [(-1, -2), (-2, -3), (-3,)]


@pytest.fixture
def dense(unique: Callable[[str], str]) -> tuple[str, str]:
    op = unique("RtFile")
    return op, k.register(k.dense(op))


def refused(op: str, record: NodeDef, error: type[Exception], *words: str) -> None:
    """The record is refused, the op still computes, and explain says why."""
    before = k.stats()["rejected"]
    with pytest.raises(error) as raised:
        k.request("composite_install", record)
    for word in words:
        assert word in str(raised.value)
    assert k.stats()["rejected"] == before + 1
    inputs = k.dense_inputs(3)
    np.testing.assert_array_equal(k.call(op, inputs), k.dense_reference(**inputs))
    explanation = k.explain(op, inputs)
    assert explanation["path"] == "expansion"
    assert words[0] in explanation["reason"]


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [truncate, flip_a_byte, empty])
def test_damaged_file(
    dense: tuple[str, str], tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    op, digest = dense
    path = k.build(tmp_path, "k_damaged", k.DENSE_C)
    record = k.record("k_damaged", op, digest, SHAPES, ["s0,s2"], path)
    damage(path)
    refused(op, record, tf.errors.DataLossError, "is damaged", str(path))


def test_missing_file(dense: tuple[str, str], tmp_path: Path) -> None:
    op, digest = dense
    path = k.build(tmp_path, "k_missing", k.DENSE_C)
    record = k.record("k_missing", op, digest, SHAPES, ["s0,s2"], path)
    path.unlink()
    refused(op, record, tf.errors.NotFoundError, "No such file", str(path))


def test_truncated_file_whose_digest_fits(dense: tuple[str, str], tmp_path: Path) -> None:
    """Half an ELF file: the loader itself must refuse it, whoever wrote that digest."""
    op, digest = dense
    path = tmp_path / "k_half.so"
    path.write_bytes(b"\x7fELF" + b"\0" * 60)
    record = k.record("k_half", op, digest, SHAPES, ["s0,s2"], path)
    path.chmod(0o600)
    refused(op, record, tf.errors.FailedPreconditionError, "does not load", str(path))


def test_link_is_not_followed(dense: tuple[str, str], tmp_path: Path) -> None:
    op, digest = dense
    path = k.build(tmp_path, "k_link", k.DENSE_C)
    link = tmp_path / "link.so"
    link.symlink_to(path)
    record = k.record("k_link", op, digest, SHAPES, ["s0,s2"], path, _library=str(link))
    refused(op, record, tf.errors.PermissionDeniedError, "it is a link")


def test_file_that_others_can_write(dense: tuple[str, str], tmp_path: Path) -> None:
    op, digest = dense
    path = k.build(tmp_path, "k_open", k.DENSE_C)
    path.chmod(0o664)
    record = k.record("k_open", op, digest, SHAPES, ["s0,s2"], path)
    refused(op, record, tf.errors.PermissionDeniedError, "can be written by others", "chmod go-w")


def test_folder_and_pipe(dense: tuple[str, str], tmp_path: Path) -> None:
    op, digest = dense
    path = k.build(tmp_path, "k_pipe", k.DENSE_C)
    pipe = tmp_path / "pipe.so"
    os.mkfifo(pipe, 0o600)
    for other in (tmp_path, pipe):
        record = k.record("k_pipe", op, digest, SHAPES, ["s0,s2"], path, _library=str(other))
        refused(op, record, tf.errors.PermissionDeniedError, "not a regular file")


def test_relative_path(dense: tuple[str, str], tmp_path: Path) -> None:
    op, digest = dense
    path = k.build(tmp_path, "k_relative", k.DENSE_C)
    record = k.record("k_relative", op, digest, SHAPES, ["s0,s2"], path, _library="k_relative.so")
    refused(op, record, tf.errors.InvalidArgumentError, "is not absolute")


def test_library_without_the_kernel(dense: tuple[str, str], tmp_path: Path) -> None:
    op, digest = dense
    path = k.build(tmp_path, "k_other", k.DENSE_C)
    record = k.record("k_wanted", op, digest, SHAPES, ["s0,s2"], path)
    refused(op, record, tf.errors.NotFoundError, "has no kernel k_wanted")


def test_kernel_of_another_machine(dense: tuple[str, str], tmp_path: Path) -> None:
    op, digest = dense
    path = k.build(tmp_path, "k_isa", k.DENSE_C)
    record = k.record("k_isa", op, digest, SHAPES, ["s0,s2"], path, _isa="riscv-v1")
    refused(op, record, tf.errors.FailedPreconditionError, "built for riscv-v1")
    record = k.record("k_isa", op, digest, SHAPES, ["s0,s2"], path, _device="CUDA")
    refused(op, record, tf.errors.FailedPreconditionError, "built for CUDA")


def test_new_files_behind_one_descriptor_number(
    unique: Callable[[str], str], tmp_path: Path
) -> None:
    """The loader knows libraries by name; each must still be the file that was checked."""
    for value in (1.0, 2.0, 3.0):
        op = unique("RtDescriptor")
        digest = k.register(k.twice(op))
        source = f"KERNEL(NAME) {{ FLOATS(1)[0] = {value}f; return 0; }}"
        folder = tmp_path / str(value)
        folder.mkdir()
        path = k.build(folder, "k_value", source)
        k.request(
            "composite_install", k.record("k_value", op, digest, [(1,)], ["1"], path, T=tf.float32)
        )
        assert float(k.call(op, {"x": tf.zeros([1])}, T=tf.float32)[0]) == value


VALUE = "KERNEL(NAME) {{ FLOATS(1)[0] = {}f; return 0; }}"


def installed_value(op: str, path: Path, library: str) -> float:
    """What a kernel of one number gives, whose record says that it is in `library`."""
    digest = k.register(k.twice(op))
    record = k.record("k_value", op, digest, [(1,)], ["1"], path, _library=library, T=tf.float32)
    k.request("composite_install", record)
    return float(k.call(op, {"x": tf.zeros([1])}, T=tf.float32)[0])


def test_a_folder_that_nothing_may_be_run_from(
    unique: Callable[[str], str], tmp_path: Path, mounted: Mounts
) -> None:
    folder = mounted(tmp_path / "folder", "mode=700,noexec")
    path = k.build(folder, "k_value", VALUE.format(5.0))
    with pytest.raises(OSError, match="failed to map segment"):
        ctypes.CDLL(str(path))
    assert installed_value(unique("RtNoexec"), path, str(path)) == 5.0
    record_of_another = k.build(tmp_path, "k_value", VALUE.format(6.0))
    with pytest.raises(tf.errors.DataLossError, match="is damaged"):
        installed_value(unique("RtNoexec"), record_of_another, str(path))


def test_a_library_in_memory(unique: Callable[[str], str], tmp_path: Path) -> None:
    for value in (7.0, 8.0):  # behind one descriptor number
        path = k.build(tmp_path, "k_value", VALUE.format(value))
        descriptor, library = memory.lasting(path.read_bytes())
        assert installed_value(unique("RtMemory"), path, str(library)) == value
        os.close(descriptor)
    with pytest.raises(tf.errors.PermissionDeniedError, match="Bad file descriptor"):
        installed_value(unique("RtMemory"), path, str(library))
    with pytest.raises(tf.errors.PermissionDeniedError, match="it is a link"):
        installed_value(unique("RtMemory"), path, f"/proc/{os.getpid()}/fd/0")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"_out_shapes": ["s0,s7"]}, "names a symbol that no input has"),
        ({"_out_shapes": ["s0 +,s2"]}, "lacks its operands"),
        ({"_out_shapes": ["s0 1,s2"]}, "not one value"),
        ({"_out_shapes": ["ten,s2"]}, "not a dim expression"),
        ({"_verdict": "fast"}, "_verdict"),
        ({"_minimums": [1, 1, 1, 1]}, "more values than symbols"),
        ({"_divisors": [0]}, "too small"),
        ({"_in_shapes": [(-9, 1), (1, 1), (1,)]}, "numbered from 0"),
        ({"_in_shapes": [(4, 1)], "_out_shapes": ["4,1"]}, "1 inputs and 1 outputs"),
        ({"_out_shapes": ["4", "4"]}, "3 inputs and 2 outputs"),
        ({"_composite_program": ""}, "_composite_program"),
    ],
)
def test_malformed_record(
    dense: tuple[str, str], tmp_path: Path, change: dict[str, object], words: str
) -> None:
    op, digest = dense
    path = k.build(tmp_path, "k_record", k.DENSE_C)
    record = k.record("k_record", op, digest, SHAPES, ["s0,s2"], path, **change)
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        k.request("composite_install", record)


def test_unknown_program(dense: tuple[str, str], tmp_path: Path) -> None:
    op, _ = dense
    path = k.build(tmp_path, "k_program", k.DENSE_C)
    record = k.record("k_program", op, "0" * 32, SHAPES, ["s0,s2"], path)
    with pytest.raises((tf.errors.FailedPreconditionError, tf.errors.NotFoundError)):
        k.request("composite_install", record)
    with pytest.raises(tf.errors.NotFoundError):
        k.request("composite_install", k.record("k", "NoSuchOp", "0" * 32, [], []))
