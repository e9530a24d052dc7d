"""What became of models, summed over them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Counts:
    """Sums over models.

    Attributes:
        models: how many were run.
        derived: of these, how many with gradients.
        refused: how many TensorFlow refuses, and regions as well.
        regions: nodes.
        kernels: those that were compiled.
        launches: their runs.
        with_kernels: models in which kernels ran.
        by_tensorflow: models in which TensorFlow's own graphs differ from its ops.
        differ: models of which something differs.
        ops: NNSmith's operators, and in how many models.
    """

    models: int = 0
    derived: int = 0
    refused: int = 0
    regions: int = 0
    kernels: int = 0
    launches: int = 0
    with_kernels: int = 0
    by_tensorflow: int = 0
    differ: int = 0
    ops: dict[str, int] = field(default_factory=dict)

    def __add__(self, other: Counts) -> Counts:
        mine, others = asdict(self), asdict(other)
        ops = {op: mine["ops"].get(op, 0) + others["ops"].get(op, 0) for op in self._ops(other)}
        sums: dict[str, Any] = {name: mine[name] + others[name] for name in mine if name != "ops"}
        return Counts(**sums, ops=ops)

    def _ops(self, other: Counts) -> list[str]:
        return sorted({*self.ops, *other.ops})

    def __str__(self) -> str:
        return (
            f"{self.models} models of {len(self.ops)} operators, {self.derived} with gradients; "
            f"TensorFlow refuses {self.refused}; {self.regions} regions, {self.kernels} kernels, "
            f"which ran {self.launches} times in {self.with_kernels} models; TensorFlow's graphs "
            f"differ from its ops in {self.by_tensorflow}; {self.differ} differ"
        )
