"""A stage of a plan: what is computed in one set of loops."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from composite.compiler.tvm.ir.dims import Shape
from composite.compiler.tvm.ir.tensor import Tensor
from composite.compiler.tvm.ir.walk import reachable


@dataclass(eq=False)
class Stage:
    """One set of loops over ``shape`` that stores ``stores``.

    ``anchor`` is the matrix product or reduction whose loops they are, computed here, and stored
    only if it is among ``stores``. It is None for element-wise work, and where ``reduced`` is not
    0: then all that the stores are made of is computed here up to what other stages store,
    reductions over the last ``reduced`` dimensions included.

    Reductions ``beside`` the anchor have its shape, and are computed in the same loops.

    A chain has ``parts``: stages that are computed on a block of rows one after the other, before
    the next block; ``shape`` numbers the rows, ``stores`` are what other stages read of it.
    """

    shape: Shape
    anchor: Tensor | None
    stores: list[Tensor] = field(default_factory=list)
    reduced: int = 0
    parts: tuple[Stage, ...] = ()
    beside: tuple[Tensor, ...] = ()

    @property
    def anchors(self) -> tuple[Tensor, ...]:
        """All around which its loops are made."""
        return self.beside if self.anchor is None else (self.anchor, *self.beside)

    @property
    def made(self) -> set[Tensor]:
        """What is computed here and may be read elsewhere."""
        return {*self.anchors, *self.stores}

    def needs(self, stored: Collection[Tensor]) -> set[Tensor]:
        """Return what is computed or read here, up to what of ``stored`` others make."""
        made = {tensor for part in (self, *self.parts) for tensor in part.made}

        def below(tensor: Tensor) -> tuple[Tensor, ...]:
            return () if tensor in stored and tensor not in made else tensor.node.operands

        return set(reachable(made, below))
