"""Object files of kernels, and of what packs their constants."""

from __future__ import annotations

import tensorflow as tf

from composite.compiler import tvm as backend
from tests.compiler.tvm.conftest import library_of

SHAPES: list[tuple[str | int, ...]] = [("s0", 96), (96, 80)]


def test_what_packs_constants_is_an_object_of_its_own() -> None:
    """It runs once, and is generated without optimization."""
    specs = [tf.TensorSpec([None, 96], tf.float32), tf.TensorSpec([96, 80], tf.float32)]
    library = library_of(tf.matmul, specs)
    (alone,) = backend.compile(library, SHAPES, name="k").objects
    assert alone == "k.o"
    objects = backend.compile(library, SHAPES, name="k", constants=[1]).objects
    assert list(objects) == ["k.o", "k_packers.o"]
    assert b"__tvm_ffi_k_pack0" in objects["k_packers.o"]
    assert b"__tvm_ffi_k_pack0" not in objects["k.o"]
