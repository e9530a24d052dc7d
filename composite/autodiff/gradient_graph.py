"""The nodes of a forward and of its gradient: which are cut from the rest, and which are kept.

Not for what is made of them: see `backward`.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from composite.autodiff import factors, graph_cut, loop_residuals, residuals
from composite.compiler import op_traits
from composite.ops import functions


@dataclass(frozen=True)
class GradientGraph:
    """A graph, as TensorFlow's and as a GraphDef, of the same nodes."""

    graph: Any
    graph_def: Any
    forward: frozenset[str]  # the nodes that the forward has, or may have
    rounded: frozenset[str]  # those that may give other bits where they are computed again
    # Those whose results may be far apart where their operands are near each other.
    jumping: frozenset[str]
    results: tuple[tuple[str, ...], ...]  # the tensors that the gradient of each input is
    of_loops: Mapping[str, str] = field(default_factory=dict)  # what loops keep, for people
    factor_names: frozenset[str] = frozenset()  # the tensors that are factors of gradients

    @classmethod
    def of(cls, graph: Any, forward: Collection[str], results: Sequence[Any]) -> GradientGraph:
        """Of a graph in which `results` are the tensors of the gradient of each input."""
        operations = graph.get_operations()
        return cls(
            graph,
            graph.as_graph_def(),
            frozenset(forward),
            frozenset(op.name for op in operations if _rounds(op)),
            frozenset(op.name for op in operations if _jumps(op)),
            tuple(tuple(tensor.name for tensor in of_one) for of_one in results),
        )

    @property
    def own(self) -> list[str]:
        """The tensors that are results, each once."""
        return list(dict.fromkeys(itertools.chain(*self.results)))

    def tensors(self, names: Iterable[str]) -> list[Any]:
        """The tensors of these names."""
        return [self.graph.get_tensor_by_name(name) for name in names]

    def described(self, name: str) -> str:
        """What a tensor is that is kept, for people."""
        (tensor,) = self.tensors([name])
        what = "a gradient's factor" if name in self.factor_names else tensor.op.type
        return self.of_loops.get(name) or f"{what} {tensor.shape}"

    def without_lists(self) -> GradientGraph:
        """The same with loops whose lists are kept as tensors, see `loop_residuals`."""
        graph_def, of_loops = loop_residuals.without_lists(self.graph_def, self.forward)
        if graph_def is self.graph_def:
            return self
        made = functions.imported(graph_def)
        return replace(self, graph=made, graph_def=graph_def, of_loops=of_loops)

    def cut(self, fed: Collection[str]) -> tuple[Any, set[str]]:
        """What makes the results of the tensors `fed`, and which of those it reads."""
        return graph_cut.consistent(
            self.graph_def, set(fed), self.own, set(self.rounded), set(self.jumping)
        )

    def to_keep(self, fed: Collection[str]) -> list[str]:
        """What the forward is to keep of what would be computed again from the tensors `fed`."""
        computed = {node.name for node in self.cut(fed)[0].node}
        names = [
            *self.of_loops,
            *residuals.to_save(self.graph, computed, self.forward, self.of_loops),
        ]
        if self.of_loops:
            names += residuals.around_loops(self.graph, self.forward, computed & self.forward)
        return list(dict.fromkeys(names))

    def with_factors(self, fed: Collection[str]) -> GradientGraph:
        """The same with gradients of element-wise chains as products, where a factor is kept.

        See `factors`; `fed` is what a cut is fed with.
        """
        found = factors.of_chains(self.graph, self.forward, self.own)
        if not found:
            return self
        whole = self._with(found)
        kept = set(whole.to_keep(fed))
        used = [one for one in found if one.factor in kept]
        if len(used) == len(found):
            return whole
        return self._with(used) if used else self

    def _with(self, found: Sequence[factors.Factor]) -> GradientGraph:
        graph_def = factors.multiplied(self.graph_def, found)
        renamed = {one.gradient: one.product for one in found}
        made = {node.name for one in found for node in one.nodes}
        return replace(
            self,
            graph=functions.imported(graph_def),
            graph_def=graph_def,
            forward=self.forward | made,
            rounded=self.rounded | made,
            factor_names=frozenset(one.factor for one in found),
            results=tuple(tuple(renamed.get(n, n) for n in names) for names in self.results),
        )


def _rounds(op: Any) -> bool:
    """Whether an operation may give other bits where it is computed again."""
    if op.type in ("Const", "Placeholder") or op_traits.of(op.type).moves_data:
        return False
    return any(y.dtype.is_floating or y.dtype.is_complex for y in op.outputs)


def _jumps(op: Any) -> bool:
    """Whether results of an operation may be far apart where its operands are near each other."""
    known = op.type in op_traits.TABLE and not op_traits.of(op.type).jumps
    return not (known and all(y.dtype.is_floating or y.dtype.is_complex for y in op.outputs))
