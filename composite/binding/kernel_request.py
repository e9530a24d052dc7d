"""A kernel that a call asks for, or that a library is built with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tensorflow.core.framework.attr_value_pb2 import AttrValue

from composite.binding.call_request import CallRequest
from composite.binding.records import CONSTANTS, NUMERICS, PROGRAM, attr_value
from composite.binding.typed_record import Dims, TypedRecord

if TYPE_CHECKING:
    from typing_extensions import Self


XLA_CPU = "xla:cpu"


@dataclass(frozen=True, kw_only=True)
class KernelRequest(TypedRecord):
    """A request; its name is the ticket that it is answered by.

    Attributes:
        program: the digest of the op's version.
        in_shapes: the dims of each input; a text is a symbol.
        size_inputs: the inputs, scalars, whose value takes the place of the shape: `(value,)`.
        constants: the inputs that never change.
        hint: the sizes of the symbols, s0 first, in the call that asked.
        must: the call waits for the kernel.
        device: "" for the CPU, "xla:cpu" for code of XLA on the CPU, or a level of GPUs such as
            "cuda:sm_80".
        invariant: a row's bits are to be the same in any batch.
        unchecked: the record of a built library's kernel that is to be checked and measured, as
            bytes; empty: one is to be made.
        image: the machine code of that kernel.
    """

    KIND: ClassVar[str] = "kernel request"

    program: str
    in_shapes: tuple[Dims, ...]
    size_inputs: tuple[int, ...] = ()
    constants: tuple[int, ...] = ()
    hint: tuple[int, ...] = ()
    must: bool = False
    device: str = ""
    invariant: bool = False
    unchecked: bytes = b""
    image: bytes = b""

    @property
    def is_for_xla(self) -> bool:
        """Whether code that XLA compiles is to call the kernel, on the CPU."""
        return self.device == XLA_CPU

    @property
    def gpu(self) -> str:
        """The level of GPUs that the kernel is for; "" for the CPU."""
        return "" if self.is_for_xla else self.device

    @classmethod
    def of_call(cls, call: CallRequest) -> Self:
        """The request for a kernel of exactly the shapes of a call, which are known."""
        return cls(
            op=call.op,
            attrs=call.attrs,
            program=call.program,
            in_shapes=tuple(tuple(shape.as_list()) for shape in call.in_shapes),
        )

    def stamps(self) -> dict[str, AttrValue]:
        """What a node of this call carries."""
        found = {PROGRAM: attr_value(self.program)}
        found |= {NUMERICS: attr_value("invariant")} if self.invariant else {}
        return found | ({CONSTANTS: attr_value(self.constants)} if self.constants else {})
