"""A call of an op, as the runtime is asked to expand or to explain it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.tensor_pb2 import TensorProto

from composite.binding.records import PROGRAM
from composite.binding.typed_record import TypedRecord

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, kw_only=True)
class CallRequest(TypedRecord):
    """A call.

    Attributes:
        program: the digest of the version that is meant; "": the one that the name stands for.
        in_shapes: of each input; none at all where nothing is known.
        constants: the value of each input, an empty proto where it is not known.
        backend: "auto", "tvm" or "tf"; "": not set.
        numerics: "fast", "strict" or "invariant"; "": not set.
        whole: digests of the versions that stay nodes where the body calls them.
        inlined: of a function, the composites that it calls are expanded.
        constant_inputs: the inputs that never change.
        variable_inputs: the inputs that are read from variables.
        uncounted: composite.stats() leaves the call out.
        device: the type of device that it is placed on; "": not known.
    """

    KIND: ClassVar[str] = "call"

    program: str = ""
    in_shapes: tuple[tf.TensorShape, ...] = ()
    constants: tuple[TensorProto, ...] | None = None
    backend: str = ""
    numerics: str = ""
    whole: tuple[str, ...] | None = None
    inlined: bool = False
    constant_inputs: tuple[int, ...] = ()
    variable_inputs: tuple[int, ...] = ()
    uncounted: bool = False
    device: str = ""

    @classmethod
    def of_node(cls, op: str, attrs: Mapping[str, AttrValue], **fields: Any) -> Self:
        """The call of a node: the op's own attributes and its version, and nothing else.

        `fields` are given in place of what the node says.
        """
        if "program" not in fields and PROGRAM in attrs:
            fields["program"] = attrs[PROGRAM].s.decode()
        own = {name: value for name, value in attrs.items() if not name.startswith("_")}
        return cls(op=op, attrs=own, **fields)
