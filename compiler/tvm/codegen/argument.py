"""How tensors are passed to a kernel: any address that TF may pass is right."""

from __future__ import annotations

from typing import Any

from tvm import tirx
from tvm.ir import PointerType, PrimType
from tvm.tirx import stmt as tir_stmt

from composite.compiler.tvm.codegen.access import Space
from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.dtypes import ITEM_SIZE
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.math.numeric import storage_dtype
from composite.compiler.tvm.tir.block import Block, Buffer, index


def declare_argument(block: Block, space: Space, tensor: Tensor, hint: str) -> tuple[Any, Buffer]:
    """Return the typed parameter, which its caller's tensors are checked by, and a flat view of it.

    The element size as alignment: nothing is assumed of an address.
    """
    size = ITEM_SIZE[tensor.dtype]
    shape = [index(space.size(d)) for d in tensor.shape]
    buffer = tirx.decl_buffer(shape, tensor.dtype, hint, data_alignment=size)
    raw = storage_dtype(tensor.dtype)
    flat = tirx.decl_buffer(
        (index(space.size(dims.product(tensor.shape))),), raw, f"{hint}_flat", data_alignment=size
    )
    data = tirx.reinterpret(PointerType(PrimType(raw)), buffer.data)
    block.add(tir_stmt.DeclBuffer(flat, data=data))
    return buffer, flat
