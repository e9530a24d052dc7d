"""Proofs about a kernel, from the TIR that code is generated from, before any code runs.

For all sizes of the kernel's class: each access is inside of its buffer, and between two barriers
no task accesses what another stores. What is not proven is told, and may be right all the same: its
check runs it with guards.
Not here: whether the numbers are right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from composite.compiler.tvm.proof.result import Proof, Unproven

__all__ = ["Proof", "Unproven", "guarded", "prove", "telling"]


def prove(functions: Mapping[str, Any], minimums: Mapping[str, int]) -> Proof:
    """Prove what can be proven of TIR functions.

    Args:
        functions: By their names: a kernel, and what packs its constants.
        minimums: For each symbol the least value that the kernel is used for; 0 if not given.
    """
    from composite.compiler.tvm.proof.walk import Walk

    found = [Walk(name, function, minimums).run() for name, function in functions.items()]
    return Proof(
        sum(one.accesses for one in found),
        sum(one.overlaps for one in found),
        tuple(failure for one in found for failure in one.unproven),
        found[0].loads,
    )


def guarded(functions: Mapping[str, Any], minimums: Mapping[str, int]) -> dict[str, Any]:
    """Return the same functions, each access that is not proven guarded: a wrong one ends the call.

    Args are those of :func:`prove`.
    """
    from composite.compiler.tvm.proof import guards

    return guards.guarded(functions, minimums)


def telling(
    functions: Sequence[Any], minimums: Mapping[str, int], known: Sequence[Mapping[str, int]]
) -> list[Mapping[str, int]]:
    """Return sizes, few and small ones, that take each branch which no known sizes take.

    Branches that no call of few elements takes are left out. Args as those of :func:`prove`.
    """
    from composite.compiler.tvm.proof import branches

    return branches.telling(functions, minimums, known)
