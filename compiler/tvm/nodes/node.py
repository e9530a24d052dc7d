"""One node of a TF function as the lowering functions see it.

Reads attributes out of TF's protos and nothing else; TensorFlow itself is not imported: the process
that compiles has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.ir.dims import Dim, Poly
from composite.compiler.tvm.ir.dtypes import DTYPES

# Numbers of tensorflow.DataType (types.proto), for the dtypes that kernels compute in.
DTYPE_OF_ENUM = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    17: "uint16",
    19: "float16",
    22: "uint32",
    23: "uint64",
}

VARIANT = 21
"""The number of tensorflow.DT_VARIANT: of lists, of elements of any dtype."""


def dtype_name(enum: int, what: str) -> str:
    """Return the dtype's name; an uncovered one is named by ``what``."""
    if enum not in DTYPE_OF_ENUM:
        raise NotCovered(f"{what}: dtype {_enum_text(enum)} is not covered")
    return DTYPE_OF_ENUM[enum]


# And for the others, which errors name.
_OTHER_DTYPES = {
    7: "DT_STRING",
    8: "DT_COMPLEX64",
    11: "DT_QINT8",
    12: "DT_QUINT8",
    13: "DT_QINT32",
    15: "DT_QINT16",
    16: "DT_QUINT16",
    18: "DT_COMPLEX128",
    20: "DT_RESOURCE",
    VARIANT: "DT_VARIANT",
    24: "DT_FLOAT8_E5M2",
    25: "DT_FLOAT8_E4M3FN",
    26: "DT_FLOAT8_E4M3FNUZ",
    27: "DT_FLOAT8_E4M3B11FNUZ",
    28: "DT_FLOAT8_E5M2FNUZ",
    29: "DT_INT4",
    30: "DT_UINT4",
    31: "DT_INT2",
    32: "DT_UINT2",
    33: "DT_FLOAT4_E2M1FN",
}


def _enum_text(enum: int) -> str:
    return _OTHER_DTYPES.get(enum, f"number {enum}")


@dataclass(frozen=True)
class OpNode:
    """A NodeDef: ``op``, ``name`` for messages, and its attributes.

    ``minimums`` holds what the kernel may take for granted: for a symbol, its least value;
    ``counts``, for the counter of each loop around it, how many values that takes.
    """

    proto: Any
    minimums: dict[str, int] = field(default_factory=dict)
    counts: Mapping[str, Dim] = field(default_factory=dict)

    @property
    def op(self) -> str:
        """The TF op's name."""
        return str(self.proto.op)

    def _attr(self, key: str) -> Any:
        # Reading an absent key of a proto map would add it.
        return self.proto.attr[key] if key in self.proto.attr else None  # noqa: SIM401

    def flag(self, key: str, default: bool = False) -> bool:
        """Return a bool attribute."""
        attr = self._attr(key)
        return default if attr is None else bool(attr.b)

    def number(self, key: str, default: int) -> int:
        """Return an int attribute."""
        attr = self._attr(key)
        return default if attr is None else int(attr.i)

    def real(self, key: str, default: float) -> float:
        """Return a float attribute (float32 in TF)."""
        attr = self._attr(key)
        return default if attr is None else float(attr.f)

    def text(self, key: str, default: str) -> str:
        """Return a string attribute."""
        attr = self._attr(key)
        return default if attr is None else str(attr.s.decode())

    def numbers(self, key: str) -> list[int]:
        """Return a list(int) attribute."""
        attr = self._attr(key)
        return [] if attr is None else [int(i) for i in attr.list.i]

    def dtype(self, key: str) -> str:
        """Return a type attribute; one that kernels do not compute in is not covered."""
        attr = self._attr(key)
        if attr is None:
            raise NotCovered(f"{self.op}: attribute {key} is missing")
        return dtype_name(attr.type, self.op)

    def require(self, dtype: str, *allowed: str) -> None:
        """Refuse a dtype that this op has no lowering for."""
        if dtype not in (allowed or DTYPES):
            raise NotCovered(f"{self.op}: dtype {dtype} is not covered")

    def is_counted(self, dim: Dim) -> bool:
        """Return whether a size depends on the counter of a loop around it."""
        return dims.mentions(dim, *self.counts)

    def within(self, place: Dim, count: Dim, what: str) -> None:
        """Refuse a place that is not one of ``count``, as :meth:`at_least` does."""
        self.at_least(place, 0, what)
        self.at_least(count - place, 1, what)

    def at_least(self, dim: Dim, least: int, what: str) -> None:
        """Refuse a size that is less; let the kernel cover no call in which a symbol makes it so.

        ``what`` names the sizes in the error.
        """
        lowest = dims.extreme(dim, self.counts)
        if lowest is None:
            raise NotCovered(f"{self.op}: whether {what} is in range is not known")
        dim = lowest
        if not isinstance(dim, Poly):
            if dim < least:
                raise NotCovered(f"{self.op}: {what} is out of range")
            return
        terms = dict(dim.terms)
        rest = least - terms.pop((), 0)
        if rest <= 0 and all(factor > 0 for factor in terms.values()):
            return
        ((monomial, factor), *others) = terms.items()
        if others or len(monomial) != 1 or factor < 0 or " " in monomial[0]:
            raise NotCovered(f"{self.op}: whether {what} is in range is not known")
        self.minimums[monomial[0]] = max(self.minimums.get(monomial[0], 0), -(-rest // factor))
