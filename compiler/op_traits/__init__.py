"""The one table of facts about TensorFlow ops, a row an op: see `traits` for what a row says.

Importable without TensorFlow and TVM. The C++ runtime has the same rows, generated when it is built
(`cpp_table`). An op without a row is one of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from . import control, movement, pointwise, randoms, reductions
from .traits import Family, InnerDim, OpTraits, Read, Runs, Terms

__all__ = ["TABLE", "Family", "InnerDim", "OpTraits", "Read", "Runs", "Terms", "of", "that_run"]

_ROWS = (*pointwise.ROWS, *movement.ROWS, *reductions.ROWS, *control.ROWS, *randoms.ROWS)

TABLE: Mapping[str, OpTraits] = MappingProxyType({row.name: row for row in _ROWS})
if len(TABLE) != len(_ROWS):
    raise ValueError("an op has two rows in compiler/op_traits")


def that_run(runs: Runs) -> frozenset[str]:
    """Return the ops that run functions in this way."""
    return frozenset(row.name for row in _ROWS if row.runs is runs)


def of(op: str) -> OpTraits:
    """Return an op's row, one that states nothing for an op without any."""
    return TABLE.get(op) or OpTraits(op)
