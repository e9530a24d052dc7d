"""The description of a library that the emitters write texts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from composite.compiler.schema import OpSchema


@dataclass(frozen=True)
class LibraryOp:
    """One op: its name in Python, its declaration and its program."""

    python_name: str
    schema: OpSchema
    doc: str
    digest: str
    program: bytes  # a serialized FunctionDefLibrary, deterministic
    mlir: str
    own_gradient: bool = False  # the author wrote one, in Python: it does not travel
    composes: str = ""  # the op of TensorFlow that it is a composition for
    replaces: bool = False  # and whether it takes the place of that op's nodes

    @property
    def op_name(self) -> str:
        """TensorFlow's name of the op."""
        return self.schema.op_name


@dataclass(frozen=True)
class LibraryKernel:
    """One kernel: the record that the runtime dispatches by, without what was measured."""

    name: str  # its C symbol is __tvm_ffi_<name>
    op_name: str
    record: bytes
    facts: dict[str, Any]  # for people: shapes, strategy, error bound
    packed: int = 0  # how many constants it packs, by the symbols __tvm_ffi_<name>_pack<i>
    image: bytes = b""  # of a kernel for GPUs, its machine code: there are no symbols then
