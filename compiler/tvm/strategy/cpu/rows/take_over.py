"""Which inputs the results of a stage over rows may be written over.

A row is read and written by one task alone. Within it, a sweep reads an element of an input before
it writes that element's place; so no later sweep than the first that writes may read the input.
"""

from __future__ import annotations

from dataclasses import dataclass

from composite.compiler.tvm.codegen.access import Storage
from composite.compiler.tvm.ir.tensor import Reshape, Tensor
from composite.compiler.tvm.plan.in_place import Forwards
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.row_program import RowProgram, Sweep


@dataclass(frozen=True)
class TakenOver:
    """What the results may be written over.

    Attributes:
        forwards: By output, the inputs.
        reads: By sweep, what it reads of those while it writes over them.
    """

    forwards: Forwards
    reads: tuple[tuple[Tensor, ...], ...]

    @classmethod
    def of(cls, program: RowProgram, context: Context) -> TakenOver:
        """Return what the sweeps allow of what the plan does."""
        space, outputs = context.space, context.plan.outputs
        reads = [[_source(t, context) for t in one.reads] for one in program.sweeps]
        taken: list[set[Tensor]] = [set() for _ in program.sweeps]
        forwards: list[tuple[int, ...]] = []
        for output, inputs in zip(outputs, context.forwards, strict=False):
            allowed = []
            for i in inputs:
                first = _first_write(program, space.storages[output], context)
                place = space.parameters[i]
                if any(place in read for read in reads[first + 1 :]):
                    continue
                allowed.append(i)
                pairs = zip(program.sweeps[first].reads, reads[first], strict=True)
                taken[first] |= {t for t, source in pairs if source == place}
            forwards.append(tuple(allowed))
        ordered = (
            tuple(t for t in dict.fromkeys(one.reads) if t in own)
            for one, own in zip(program.sweeps, taken, strict=True)
        )
        return cls(tuple(forwards), tuple(ordered))


def _source(tensor: Tensor, context: Context) -> Storage | None:
    node = tensor.node
    while isinstance(node, Reshape) and context.space.storage(tensor) is None:
        tensor = node.operand
        node = tensor.node
    return context.space.storage(tensor)


def _first_write(program: RowProgram, storage: Storage, context: Context) -> int:
    """Return the number of the first sweep that stores an output, or keeps something there."""
    storages = context.space.storages

    def writes(one: Sweep) -> bool:
        kept = (program.in_place[t] for t in one.keeps if t in program.in_place)
        return any(storages[t] is storage for t in (*one.stores, *kept))

    return next(i for i, one in enumerate(program.sweeps) if writes(one))
