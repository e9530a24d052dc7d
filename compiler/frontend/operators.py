"""Python's operators and the IR's names for them: a table.

Not for: what they do to a number or a tensor; the expansion decides that.
"""

from __future__ import annotations

import gast

BINARY: dict[type, str] = {
    gast.Add: "add",
    gast.Sub: "sub",
    gast.Mult: "mul",
    gast.Div: "truediv",
    gast.FloorDiv: "floordiv",
    gast.Mod: "mod",
    gast.Pow: "pow",
    gast.MatMult: "matmul",
    gast.BitAnd: "and",
    gast.BitOr: "or",
    gast.BitXor: "xor",
    gast.LShift: "lshift",
    gast.RShift: "rshift",
}

UNARY: dict[type, str] = {
    gast.USub: "neg",
    gast.UAdd: "pos",
    gast.Not: "not",
    gast.Invert: "invert",
}

COMPARE: dict[type, str] = {
    gast.Eq: "eq",
    gast.NotEq: "ne",
    gast.Lt: "lt",
    gast.LtE: "le",
    gast.Gt: "gt",
    gast.GtE: "ge",
    gast.In: "in",
    gast.NotIn: "not_in",
    gast.Is: "is",
    gast.IsNot: "is_not",
}
