"""The C function of a kernel, as TVM's FFI calls it: it hands the loops the buffers of tensors.

Whoever calls a kernel has chosen it by dtypes and shapes, and passes compact tensors. So one number
says whether the arguments are what it was compiled for: a loop makes it of what describes them. A
branch and a message for each property of each argument would be more code than many loops are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import ir, tirx
from tvm.ir import PointerType, PrimType
from tvm.tirx import stmt as tir_stmt

from composite.compiler.tvm.ir.dtypes import ITEM_SIZE
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.tir.block import Block, Buffer, const, index

SYMBOL_PREFIX = "__tvm_ffi_"

# Numbers of TVM 0.27. Fields of a DLTensor, of a TVMFFIAny, and of an array of int64:
_DATA, _DIMS, _RANK, _CODE, _BITS, _LANES, _OFFSET, _DEVICE = 1, 2, 4, 5, 6, 7, 8, 10
_KIND, _POINTER = 13, 15
_ELEMENT = 17
# kinds of a TVMFFIAny: a DLTensor, and a tensor of TVM's own, whose DLTensor is further behind;
_DLTENSOR, _TENSOR, _HEADER_BYTES = 7, 70, 24
_CPU = 1  # a type of devices;
_C_FUNCTION = 1  # a convention of calls.

_DESCRIBED = (
    (_RANK, "int32"),
    (_DEVICE, "int32"),
    (_CODE, "uint8"),
    (_BITS, "uint8"),
    (_LANES, "uint16"),
)

_ANY, _INT64S = PointerType(PrimType("void")), PointerType(PrimType("int64"))

_SHIFTS = (13, -7, 17)
"""The shifts of Marsaglia's xorshift64 (Xorshift RNGs, 2003), to the left where they are positive:
each property changes half of the bits of what was before it. To multiply would be no good: LLVM is
told that products of unsigned numbers do not overflow."""


def entry(function: Any) -> Any:
    """Return the C function of a TIR function of buffers.

    The loops stay a function of their own in it: LLVM is told of its arguments' aliases.
    """
    attributes = dict(function.attrs.items())
    name = str(attributes["global_symbol"])
    attributes |= {"calling_conv": _C_FUNCTION, "global_symbol": SYMBOL_PREFIX + name}
    arguments, count = tirx.Var("arguments", _ANY), tirx.Var("count", "int32")
    parameters = [tirx.Var("self", _ANY), arguments, count, tirx.Var("result", _ANY)]
    body = _Entry(name, list(function.params), arguments).body(count, function.body)
    made = tirx.PrimFunc(parameters, body, ret_type=PrimType("int32"))
    return made.with_attrs(attributes)


class _Entry:
    def __init__(self, name: str, buffers: Sequence[Buffer], arguments: Any) -> None:
        self._name = name
        self._buffers = buffers
        self._arguments = arguments
        self._block = Block()
        self._has_symbols = any(_is_symbol(size) for b in buffers for size in b.shape)

    def body(self, count: Expr, loops: Any) -> Any:
        self._check(count.equal(len(self._buffers)))
        self._check_kinds()
        self._check_descriptions()
        tensors = [self._tensor(index(i)) for i in range(len(self._buffers))]
        if self._has_symbols:
            self._check_sizes(tensors)
        for buffer, tensor in zip(self._buffers, tensors, strict=True):
            self._declare(buffer, tensor)
        own = tir_stmt.AttrStmt(0, "compute_scope", ir.StringImm(f"{self._name}_compute_"), loops)
        self._block.add(own)
        self._block.add(tir_stmt.Return(const(0, "int32")))
        whole = self._block.finish()
        for key, value in (("device_type", _CPU), ("device_id", 0)):  # of the workspaces
            whole = tir_stmt.AttrStmt("default", key, const(value, "int32"), whole)
        return whole

    def _check_kinds(self) -> None:
        """Check that all arguments are tensors."""
        block, others = self._block, self._block.registers(1, "int32", "others")
        block.store(others, 0, const(0, "int32"))
        with block.loop(len(self._buffers), "i") as i:
            kind = _field("int32", self._arguments, i, _KIND)
            is_tensor = tirx.any(kind.equal(_DLTENSOR), kind.equal(_TENSOR))
            other = tirx.Cast("int32", tirx.Not(is_tensor))
            block.store(others, 0, block.load(others, 0) + other)
        self._check(block.load(others, 0).equal(0))

    def _check_descriptions(self) -> None:
        """Check ranks, dtypes and devices; where all dims are known, these too."""
        block, total = self._block, self._block.registers(1, "uint64", "total")

        def mix(value: Expr) -> None:
            mixed = block.load(total, 0)
            for shift in _SHIFTS:
                by = const(abs(shift), "uint64")
                mixed = block.let(mixed ^ (mixed << by if shift > 0 else mixed >> by))
            block.store(total, 0, mixed ^ tirx.Cast("uint64", value))

        block.store(total, 0, const(0, "uint64"))
        with block.loop(len(self._buffers), "i") as i:
            tensor = self._tensor(i)
            for field, dtype in _DESCRIBED:
                mix(_field(dtype, tensor, 0, field))
            if not self._has_symbols:
                dims = _field(_INT64S, tensor, 0, _DIMS)
                rank = tirx.Cast("int64", _field("int32", tensor, 0, _RANK))
                with block.loop(rank, "d") as d:
                    mix(_field("int64", dims, d, _ELEMENT))
        made = tirx.Cast("int64", block.load(total, 0))
        self._check(made.equal(const(self._expected(), "int64")))

    def _expected(self) -> int:
        """Return the number that the loop makes of what the kernel was compiled for."""
        total = 0
        for buffer in self._buffers:
            dtype = buffer.dtype
            values = [len(buffer.shape), _CPU, dtype.type_code, dtype.bits, dtype.lanes]
            values += [] if self._has_symbols else [int(size) for size in buffer.shape]
            for value in values:
                for shift in _SHIFTS:
                    total ^= (total << shift) % (1 << 64) if shift > 0 else total >> -shift
                total ^= int(value)
        return total - (1 << 64) * (total >> 63)  # as an int64

    def _check_sizes(self, tensors: Sequence[Any]) -> None:
        """Give the symbols their values, and check what else is said of sizes."""
        said: list[tuple[Expr, Expr]] = []
        known = set()
        for buffer, tensor in zip(self._buffers, tensors, strict=True):
            dims = _field(_INT64S, tensor, 0, _DIMS)
            for axis, size in enumerate(buffer.shape):
                value = _field("int64", dims, axis, _ELEMENT)
                if _is_symbol(size) and size not in known:
                    known.add(size)
                    self._block.add(tir_stmt.Bind(size, value))
                else:
                    said.append((size, value))
        for size, value in said:
            self._check(value.equal(size))

    def _tensor(self, i: Expr) -> Any:
        """Return the pointer to what an argument describes, which is a tensor."""
        kind = _field("int32", self._arguments, i, _KIND)
        header = tirx.Cast("int32", kind.equal(_TENSOR)) * _HEADER_BYTES
        return _behind(_field(_ANY, self._arguments, i, _POINTER), header)

    def _declare(self, buffer: Buffer, tensor: Any) -> None:
        data = _behind(_field(_ANY, tensor, 0, _DATA), _field("uint64", tensor, 0, _OFFSET))
        declared = tir_stmt.DeclBuffer(buffer, data=tirx.reinterpret(buffer.data.ty, data))
        alignment = const(ITEM_SIZE[str(buffer.dtype)], "int32")
        nothing = tir_stmt.Evaluate(const(0, "int32"))
        self._block.add(declared)
        self._block.add(tir_stmt.AttrStmt(buffer, "storage_alignment", alignment, nothing))

    def _check(self, holds: Expr) -> None:
        """End the call with an error unless a condition holds."""
        message = [ir.StringImm(f"{self._name}: an argument is none that it was compiled for")]
        self._block.add(tir_stmt.AssertStmt(holds, ir.StringImm("TypeError"), message))


def _is_symbol(size: Expr) -> bool:
    return isinstance(size, tirx.Var)


def _field(kind: Any, struct: Any, i: Expr | int, field: int) -> Any:
    return tirx.tvm_struct_get(struct, i, field, kind)


def _behind(pointer: Any, count: Expr) -> Any:
    return tirx.op.handle_add_byte_offset(pointer, count)
