"""What can be stated of a TensorFlow op by its name alone.

A trait is a fact about the op, never about what we do with it: whoever needs a decision derives it
from traits. What TensorFlow's OpDefs say (dtypes, attributes, state) is not repeated here.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

# The module of compiler/tvm/lower with the op's lowering, in the order of docs/kernels.md.
Family: TypeAlias = Literal[
    "activation",
    "arithmetic",
    "comparison",
    "contraction",
    "einsum",
    "convolution",
    "data",
    "joining",
    "blocks",
    "normalization",
    "pooling",
    "volumes",
    "resizing",
    "reduction",
    "largest",
    "scanning",
    "scattering",
    "softmax",
    "lists",
    "slicing",
    "gathering",
    "places",
    "randoms",
    "static",
    "unary",
]


class Read(enum.Enum):
    """What an op does with the elements of an operand."""

    VALUES = "values"  # computes with them
    MOVED = "moved"  # gives them on, bit by bit
    INDEX = "index"  # takes them for places, axes, sizes or a choice between other operands
    SHAPE = "shape"  # does not look at them: it reads the operand's shape alone


class Runs(enum.Enum):
    """How an op runs the functions that its attributes name."""

    CALL = "call"  # once, on its operands
    BRANCH = "branch"  # one of several, which operand 0 chooses, on the other operands
    LOOP = "loop"  # a body on what it carries, while a condition holds


@dataclass(frozen=True)
class InnerDim:
    """A sum over the last dim of operand 0, or the one before it where a bool attribute is set."""

    transposed: str


class Terms(enum.Enum):
    """Over what else an op sums up each element of its result."""

    WINDOW = "window"  # all dims of the filter, operand 1, but the last, its output channels
    REDUCED = "reduced"  # the elements of operand 0 that one element of the result is made of
    EQUATION = "equation"  # told by an attribute, in a language of its own


@dataclass(frozen=True)
class OpTraits:
    """One row of the table: a TensorFlow op.

    Attributes:
        name: TensorFlow's.
        family: which module of compiler/tvm/lower lowers it; None for an op without a lowering.
        limits: what a lowering refuses besides dtypes where that is not plain: for kernels.md.
        elementwise: each element of the result depends on the elements of the operands at its
            place and on nothing else; operands broadcast as in NumPy.
        reads: for each operand of the OpDef, in its order, what the op does with its elements; None
            for an op that computes with all of them.
        outputs: the names of the results in the OpDef where it has more than one.
        terms: over what an element of the result is summed up; None where it is not a sum.
        operations: the vector instructions that an element takes where it is not a sum, roughly.
        commutes: its operands may be exchanged for each other.
        jumps: results may be far apart where operands are near each other, though they are floats.
        ends_at_zero: results are NaN or infinite where the first operand is below zero, or a little
            less, and finite above.
        stateless_twin: of a random op with hidden state, the op that draws the same distribution
            from a seed.
        draws: whether its results are random numbers, others in each dtype.
        runs: how it runs the functions that it names; None where it names none.
        structural: TensorFlow's executor, placer or partitioner finds it in graphs by its name.
    """

    name: str
    family: Family | None = None
    limits: str = ""
    elementwise: bool = False
    reads: Mapping[str, Read] | None = None
    outputs: tuple[str, ...] = ()
    terms: InnerDim | Terms | None = None
    operations: int = 1
    commutes: bool = False
    jumps: bool = False
    ends_at_zero: bool = False
    stateless_twin: str = ""
    draws: bool = False
    runs: Runs | None = None
    structural: bool = False

    @property
    def moves_data(self) -> bool:
        """Whether each element of a result is one of an operand, a size or a constant."""
        return self.reads is not None and Read.VALUES not in self.reads.values()

    @property
    def reads_only_shapes(self) -> bool:
        """Whether the results are known with the shapes of the operands."""
        return bool(self.reads) and set((self.reads or {}).values()) == {Read.SHAPE}


def reads(**operands: Read) -> Mapping[str, Read]:
    """What an op does with each operand, by the OpDef's name."""
    return MappingProxyType(operands)
