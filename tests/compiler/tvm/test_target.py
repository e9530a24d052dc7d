"""Targets: levels of the psABI, vector shapes, this machine."""

from __future__ import annotations

import dataclasses
import re

import pytest
import tensorflow as tf

from composite.compiler.tvm import Target
from composite.compiler.tvm.build import make_module
from composite.compiler.tvm.machine import AARCH64, BFLOAT16
from composite.compiler.tvm.machine_code import generate
from composite.compiler.tvm.plan.plan import make_plan
from composite.compiler.tvm.read.reader import read_function
from composite.compiler.tvm.target import CudaTarget
from tests.compiler.tvm.conftest import library_of


def test_host_is_a_level_with_its_cores() -> None:
    host = Target.host()
    assert host == Target.of(host.isa, host.cores)
    assert host.cores >= 1
    assert host.key == f"{host.isa}-{host.cores}"


@pytest.mark.parametrize(
    ("isa", "lanes", "registers"),
    [
        ("x86-64-v2", 4, 16),
        ("x86-64-v3", 8, 16),
        ("x86-64-v4", 16, 32),
        (BFLOAT16, 16, 32),
        (AARCH64, 4, 32),
    ],
)
def test_levels(isa: str, lanes: int, registers: int) -> None:
    target = Target.of(isa, 4)
    assert (target.lanes, target.registers) == (lanes, registers)
    with pytest.raises(dataclasses.FrozenInstanceError):
        target.lanes = 1  # type: ignore[misc]


def test_products_of_bfloat16_are_a_level_of_their_own() -> None:
    plain, more = Target.of("x86-64-v4", 4), Target.of(BFLOAT16, 4)
    assert plain.isa < more.isa
    assert plain.key != more.key
    assert (plain.has_bfloat16, more.has_bfloat16) == (False, True)


def test_unknown_level() -> None:
    with pytest.raises(ValueError, match="no level that kernels are made for"):
        Target.of("sparc", 1)


def test_levels_of_gpus() -> None:
    target = CudaTarget.level("sm_90")
    assert (target.device, target.key) == ("cuda", "cuda-sm_90")
    assert CudaTarget.level("sm_90", tensor_float_32=True).key == "cuda-sm_90-tf32"
    assert target.has_fma
    assert target.tvm() == {"kind": "cuda", "arch": "sm_90"}
    with pytest.raises(ValueError, match="'sm_20' is no level that kernels are made for: sm_80"):
        CudaTarget.level("sm_20")


@pytest.mark.parametrize(
    ("device", "key"),
    [("sm_80", "cuda-sm_80"), ("sm_86", "cuda-sm_80"), ("sm_90", "cuda-sm_90"),
     ("sm_103", "cuda-sm_100"), ("sm_120", "cuda-sm_100-ptx")],
)  # fmt: skip
def test_what_a_gpu_is_given(device: str, key: str) -> None:
    """A cubin of its own major number, or PTX."""
    assert CudaTarget.of_device(f"cuda:{device}").key == key


def test_a_gpu_that_is_too_old() -> None:
    with pytest.raises(ValueError, match="need a GPU of level sm_80, and this is cuda:sm_75"):
        CudaTarget.of_device("cuda:sm_75")


def test_code_for_arm_has_vectors_and_fused_products() -> None:
    target = Target.of(AARCH64, 2)
    assert target.key == "aarch64-2"
    library = library_of(tf.linalg.matmul, [tf.TensorSpec([16, 64]), tf.TensorSpec([64, 64])])
    plan = make_plan(read_function(library, [(16, 64), (64, 64)]))
    text = generate(make_module(plan, target, "kernel").functions, target).inspect_source("asm")
    assert re.search(r"fmla\tv\d+\.4s", text)


@pytest.mark.parametrize(("isa", "register"), [("x86-64-v3", "%ymm"), ("x86-64-v4", "%zmm")])
def test_vectors_are_stored_whole(isa: str, register: str) -> None:
    target = Target.of(isa, 1)
    library = library_of(tf.exp, [tf.TensorSpec([1024])])
    module = make_module(make_plan(read_function(library, [(1024,)])), target, "kernel")
    text = generate(module.functions, target).inspect_source("asm")
    stores = [line for line in text.splitlines() if line.strip().endswith(")") and "vmov" in line]
    assert any(register in line.split(",")[0] for line in stores)
    assert "vextractf64x4" not in text
