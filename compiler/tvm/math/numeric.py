"""Casts, integer arithmetic that wraps, and comparisons with TF's treatment of NaN.

TVM's integer ``+ - *`` carry no-wrap flags and its simplifier reasons without overflow, both right
for indices and wrong for data; data goes through the functions here. Everything works on scalars
and vectors alike.
"""

from __future__ import annotations

import numpy as np
from tvm import tirx

from composite.compiler.tvm.ir.dtypes import NARROW_FLOATS, STORED_INTEGERS
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.math import bfloat16
from composite.compiler.tvm.math.by_name import by_name
from composite.compiler.tvm.tir.block import Block, const, dtype_of, lanes_of

STORAGE = {"bfloat16": "uint16", "bool": "uint8"}
"""How a dtype lies in memory where TVM's own type would go through a legalizing pass."""


def storage_dtype(dtype: str) -> str:
    """Return the element type of the flat buffer that holds values of a dtype."""
    return STORAGE.get(dtype, dtype)


def element(expr: Expr) -> str:
    """Return the dtype of one lane."""
    return str(dtype_of(expr).with_lanes(1))


def like(value: float, expr: Expr) -> Expr:
    """Return a constant of the expression's dtype and lanes."""
    return const(value, str(dtype_of(expr)))


def literal(value: float, dtype: str) -> Expr:
    """Return a constant of the user's as data.

    TVM folds ``x * 0`` and ``0 / x`` to 0, NaN or not; of the root of zero it knows nothing.
    """
    number = const(value, dtype)
    return tirx.sqrt(number) if value == 0 and dtype in ("float32", "float64") else number


def with_lanes(dtype: str, expr: Expr) -> str:
    """Return ``dtype`` with the lanes of the expression."""
    lanes = lanes_of(expr)
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def convert(expr: Expr, dtype: str) -> Expr:
    """Convert lane by lane with LLVM's own conversion (C's semantics)."""
    return expr if element(expr) == dtype else tirx.Cast(with_lanes(dtype, expr), expr)


def widened(value: Expr, zero: int) -> Expr:
    """Return narrow integers in int32, less a zero point; what is no such is returned as it is."""
    if element(value) not in STORED_INTEGERS:
        return value
    value = convert(value, "int32")
    return value - const(zero, with_lanes("int32", value)) if zero else value


def bits(expr: Expr, dtype: str) -> Expr:
    """Reinterpret the bits of each lane."""
    if isinstance(expr, tirx.IntImm) and "int" in dtype:  # TVM 0.27 takes a 0 for a null pointer
        return const(int(expr.value) % (1 << dtype_of(expr).bits), dtype)
    return tirx.reinterpret(with_lanes(dtype, expr), expr)


def with_sign_of(block: Block, x: Expr, size: Expr) -> Expr:
    """Return a float32 whose sign is not set, with the sign of another."""
    integers = with_lanes("int32", x)
    sign = bits(x, "int32") & const(-(1 << 31), integers)
    return bits(block.let(bits(size, "int32") | sign), "float32")


def choose(condition: Expr, then: Expr, other: Expr) -> Expr:
    """Return ``then`` where the condition holds, else ``other``; both are computed."""
    return tirx.Select(condition, then, other)


def equal(a: Expr, b: Expr) -> Expr:
    """Return where two values are equal; Python's ``==`` on TVM expressions compares objects.

    A denormal equals zero. LLVM compares the bits of a float with those of a constant zero if
    integer instructions made the float (a bfloat16, -x), and the bits of a denormal are others. The
    fence hides the constant.
    """
    if dtype_of(a).is_bool:
        return choose(a, b, tirx.Not(b))
    return tirx.EQ(a, fence(b) if "float" in element(b) and _may_be_zero(b) else b)


def _may_be_zero(e: Expr) -> bool:
    number = e.value if isinstance(e, tirx.Broadcast) else e
    return not isinstance(number, tirx.FloatImm) or float(number.value) == 0


def differ(a: Expr, b: Expr) -> Expr:
    """Return where two values differ, NaN from itself too (TVM's NE is false for NaN)."""
    return tirx.Not(equal(a, b))


def is_nan(x: Expr) -> Expr:
    """Return where x is NaN."""
    return tirx.Not(tirx.EQ(x, x))


def lane_by_lane(block: Block, function: str, *operands: Expr) -> Expr:
    """Call a function of the C library for each lane."""
    lanes = lanes_of(operands[0])
    dtype = element(operands[0])
    if lanes == 1:
        return block.let(tirx.call_pure_extern(dtype, function, *operands))
    results = []
    for lane in range(lanes):
        scalars = [tirx.Shuffle([x], [lane]) for x in operands]
        results.append(block.let(tirx.call_pure_extern(dtype, function, *scalars)))
    return block.let(tirx.Shuffle(results, list(range(lanes))))


def from_storage(raw: Expr, dtype: str) -> Expr:
    """Return a loaded element in its compute dtype."""
    if dtype == "bfloat16":
        return bits(convert(raw, "uint32") << const(16, with_lanes("uint32", raw)), "float32")
    if dtype == "bool":
        return differ(raw, const(0, with_lanes("uint8", raw)))
    if dtype == "float16":
        return convert(raw, "float32")
    return raw


def loaded(block: Block, raw: Expr, dtype: str) -> Expr:
    """Return a loaded element as `from_storage` does; to store it again rounds nothing."""
    raw = block.let(raw, "x")
    value = block.let(from_storage(raw, dtype))
    if dtype in NARROW_FLOATS:
        block.note_stored(value, dtype, raw)
    return value


def to_storage(block: Block, value: Expr, dtype: str) -> Expr:
    """Return a computed value as it is stored; 16-bit floats round to nearest, ties to even."""
    known = block.stored(value, dtype)
    if known is not None:
        return known
    if dtype == "bfloat16":
        with block.stand_ins.standing(convert(bits(value, "uint32"), "uint16")) as found:
            flushes = block.flushes and lanes_of(value) % bfloat16.LANES == 0
            return found((bfloat16.rounded if flushes else _to_bfloat16)(block, value))
    return convert(value, storage_dtype(dtype))


def _to_bfloat16(block: Block, value: Expr) -> Expr:
    """Round float32 to the upper 16 bits; NaN stays NaN (rounding could carry it to zero)."""
    raw = block.let(bits(value, "uint32"))
    sixteen = const(16, with_lanes("uint32", value))
    one = const(1, with_lanes("uint32", value))
    rounded = (raw + (((raw >> sixteen) & one) + const(0x7FFF, with_lanes("uint32", value)))) >> (
        sixteen
    )
    quiet = (raw >> sixteen) | const(0x40, with_lanes("uint32", value))
    return convert(choose(is_nan(value), quiet, rounded), "uint16")


def round_to(block: Block, value: Expr, dtype: str) -> Expr:
    """Return the value as a store and a load of ``dtype`` would leave it."""
    if block.stored(value, dtype) is not None:
        return value
    return loaded(block, to_storage(block, value, dtype), dtype)


_NARROW_INTEGERS = ("int8", "int16", "uint8", "uint16")


def cast(block: Block, x: Expr, source: str, target: str) -> Expr:
    """Convert between compute dtypes as TF's Cast does; ``x`` holds a value of ``source``.

    Narrow floats are rounded where they are cast from or to, so that a cast means what it says.
    What does not fit an integer of 8 or 16 bits becomes its largest or least, as in the vectors of
    TensorFlow's loops.
    """
    if source == target:
        return x
    if source in ("float16", "bfloat16"):
        x = round_to(block, x, source)
    if target == "bool":
        return differ(x, like(0, x))
    if target in ("float16", "bfloat16"):
        return round_to(block, convert(x, "float32"), target)
    if "float" in source and "int" in target:
        with block.stand_ins.standing(convert(x, target)) as found:
            return found(_to_integer(block, x, target))
    return convert(x, target)


def _to_integer(block: Block, x: Expr, target: str) -> Expr:
    if target in _NARROW_INTEGERS:
        return convert(block.let(convert(_inside(block, x, target), "int32")), target)
    if target in ("int32", "int64"):
        return convert(_inside(block, x, target), target)
    return convert(x, target)


def _inside(block: Block, x: Expr, target: str) -> Expr:
    """Return floats as the nearest that fit an integer dtype; LLVM leaves the others open.

    The machine has the least number for what does not fit, NaNs included. TensorFlow converts to
    8 and 16 bits by way of int32.
    """
    info = np.iinfo(target)
    least, end = like(float(info.min), x), like(2.0 ** max(31, info.bits - 1), x)
    x = below = block.let(x)
    if info.bits <= 16:
        most = like(float(info.max), x)
        below = block.let(choose(x > most, most, x))
    inside = block.let(choose(x < end, below, least))
    return block.let(choose(x > least, inside, least))


def _halves(block: Block, x: Expr) -> tuple[Expr, Expr]:
    """Return the lower 32 bits as a value in [0, 2^32) and the upper, signed, of int64."""
    mask = const(0xFFFFFFFF, with_lanes("int64", x))
    return block.let(x & mask), block.let(x >> const(32, with_lanes("int64", x)))


def _join(high: Expr, low: Expr) -> Expr:
    thirty_two = const(32, with_lanes("int64", high))
    return (high << thirty_two) | (low & const(0xFFFFFFFF, with_lanes("int64", low)))


def add(block: Block, a: Expr, b: Expr) -> Expr:
    """Return a + b; integers wrap."""
    if element(a) == "int32":
        return convert(convert(a, "int64") + convert(b, "int64"), "int32")
    if element(a) == "int64":
        (a_low, a_high), (b_low, b_high) = _halves(block, a), _halves(block, b)
        low = block.let(a_low + b_low)
        return _join(a_high + b_high + (low >> const(32, with_lanes("int64", a))), low)
    return a + b


def sub(block: Block, a: Expr, b: Expr) -> Expr:
    """Return a - b; integers wrap."""
    if element(a) == "int32":
        return convert(convert(a, "int64") - convert(b, "int64"), "int32")
    if element(a) == "int64":
        (a_low, a_high), (b_low, b_high) = _halves(block, a), _halves(block, b)
        low = block.let(a_low - b_low)
        return _join(a_high - b_high + (low >> const(32, with_lanes("int64", a))), low)
    return a - b


def mul(block: Block, a: Expr, b: Expr) -> Expr:
    """Return a * b; integers wrap."""
    if element(a) == "int32":
        return convert(convert(a, "int64") * convert(b, "int64"), "int32")
    if element(a) == "int64":
        return _mul_int64(block, a, b)
    return a * b


def _mul_int64(block: Block, a: Expr, b: Expr) -> Expr:
    """Multiply modulo 2^64 from products of 32-bit halves, none of which overflows uint64."""
    (a_low, a_high), (b_low, b_high) = _halves(block, a), _halves(block, b)
    mask = const(0xFFFFFFFF, with_lanes("uint64", a))
    thirty_two = const(32, with_lanes("uint64", a))

    def unsigned(x: Expr) -> Expr:
        return block.let(bits(x, "uint64") & mask)

    low = block.let(unsigned(a_low) * unsigned(b_low))
    cross = block.let(unsigned(a_high) * unsigned(b_low) & mask)
    cross = block.let(cross + (unsigned(a_low) * unsigned(b_high) & mask))
    high = block.let(((low >> thirty_two) + cross) & mask)
    return bits((high << thirty_two) | (low & mask), "int64")


@by_name
def neg(block: Block, x: Expr) -> Expr:
    """Return -x; the sign bit of a float is flipped, the smallest integer wraps to itself."""
    if element(x).startswith("int"):
        return sub(block, like(0, x), x)
    width = dtype_of(x).bits
    return bits(
        bits(x, f"uint{width}") ^ const(1 << (width - 1), with_lanes(f"uint{width}", x)),
        element(x),
    )


@by_name
def absolute(block: Block, x: Expr) -> Expr:
    """Return abs(x); the smallest integer stays itself."""
    if element(x).startswith("int"):
        return choose(x < like(0, x), neg(block, x), x)
    width = dtype_of(x).bits
    mask = const((1 << (width - 1)) - 1, with_lanes(f"uint{width}", x))
    return bits(bits(x, f"uint{width}") & mask, element(x))


def fence(value: Expr) -> Expr:
    """Return a floating value that LLVM does not combine with what reads it; no instruction."""
    return tirx.call_llvm_pure_intrin(str(dtype_of(value)), "llvm.arithmetic.fence", value)


def multiply_add(block: Block, a: Expr, b: Expr, c: Expr) -> Expr:
    """Return a * b + c, rounded once; a call into libm where the target has no such instruction."""
    return block.let(tirx.call_llvm_pure_intrin(str(dtype_of(a)), "llvm.fma", a, b, c))


def larger(_: Block, a: Expr, b: Expr) -> Expr:
    """Return the larger of two values, NaN if one is, and a if they are equal."""
    # The inner choice is the machine's own maximum, which gives a where one is NaN.
    return choose(is_nan(b), b, choose(b > a, b, a))


def smaller(_: Block, a: Expr, b: Expr) -> Expr:
    """Return the smaller of two values, NaN if one is, and a if they are equal."""
    return choose(is_nan(b), b, choose(b < a, b, a))
