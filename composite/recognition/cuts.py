"""The parts of a graph that end in a tensor and have so many inputs: where an op may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from composite.ops import call, functions
from composite.recognition.reading import COPIES, OF_SIZES, Constants
from composite.recognition.vocabulary import Vocabulary, kinds_of_op

_MOST_STEPS = 400  # for one node and size
_SIZES = (8, 16, 40)


@dataclass(frozen=True)
class Cut:
    """A part of a graph.

    Attributes:
        root: what it computes.
        inputs: the tensors that it is computed from.
        ops: the nodes that compute it, without constants and what follows from them.
        kinds: those of its nodes.
    """

    root: Any
    inputs: tuple[Any, ...]
    ops: frozenset[str]
    kinds: frozenset[str]


def resolved(tensor: Any) -> Any:
    """What a tensor is a copy of."""
    while tensor.op.type in COPIES:
        tensor = tensor.op.inputs[0]
    return tensor


class Cuts:
    """Parts of a graph in which an op with a vocabulary may be."""

    def __init__(
        self,
        constants: Constants,
        order: Mapping[str, int],
        words: Vocabulary,
        dtypes: Sequence[frozenset[Any]],
    ) -> None:
        """`order` is that of nodes, results first; `dtypes` those that each input may have."""
        self._constants = constants
        self._order = order
        self._words = words
        self._dtypes = dtypes
        self._steps = 0
        self._size = 0
        self._known: dict[str, bool] = {}
        self._sources: dict[str, set[str]] = {}

    def at(self, root: Any, most: int) -> Iterator[Cut]:
        """Each part that computes a tensor from at most so many others.

        Those of which no input is computed from another come first, and small ones.
        """
        if not self._may_be(root):
            return
        seen: set[tuple[str, ...]] = set()
        later: list[tuple[int, Cut]] = []
        for size in _SIZES:
            self._size = size
            self._steps = _MOST_STEPS
            for cut in self._from(root, (root,), (), {}, Counter(), most):
                names = tuple(sorted(one.name for one in cut.inputs))
                if names in seen:
                    continue
                seen.add(names)
                entangled = sum(bool(self._behind(x) & {*names}) for x in cut.inputs)
                if entangled:
                    later.append((entangled, cut))
                else:
                    yield cut
        later.sort(key=lambda one: one[0])
        yield from (cut for _, cut in later)

    def _behind(self, tensor: Any) -> set[str]:
        """What a tensor is computed from by nodes that may be the op's: parts seldom end there."""
        if tensor.name not in self._sources:
            found: set[str] = set()
            pending = [tensor]
            while pending and len(found) <= self._words.size:
                one = pending.pop(0)
                if self._is_open(one) and self._opens(one):
                    operands = [x for x in self._operands(one) if x.name not in found]
                    found |= {x.name for x in operands}
                    pending += operands
            self._sources[tensor.name] = found
        return self._sources[tensor.name]

    def _may_be(self, root: Any) -> bool:
        """Whether all that the op needs is within reach."""
        seen: dict[str, Any] = {}
        pending = [root]
        while pending and len(seen) <= self._words.size:
            one = pending.pop()
            if one.op.name not in seen and self._is_open(one) and self._opens(one):
                seen[one.op.name] = one
                pending += self._operands(one)
        found = {kind for one in seen.values() for kind in kinds_of_op(one.op)}
        return bool(seen) and found >= self._words.needed

    def _operands(self, tensor: Any) -> list[Any]:
        return [resolved(one) for one in tensor.op.inputs]

    def _is_open(self, tensor: Any) -> bool:
        return self._constants.value(tensor) is None or self._constants.is_size(tensor)

    def _opens(self, tensor: Any) -> bool:
        """Whether a node may be one of the op's."""
        if tensor.name not in self._known:
            self._known[tensor.name] = self._may_open(tensor)
        return self._known[tensor.name]

    def _may_open(self, tensor: Any) -> bool:
        op = tensor.op
        definition = call.op_def(op.type)
        if definition is None or definition.is_stateful or not op.inputs:
            return False
        if not all(x.shape.is_fully_defined() for x in (*op.inputs, tensor)):
            return False
        if any(list(functions.named_by(value)) for value in op.node_def.attr.values()):
            return False  # a loop or a branch
        return all(kind in self._words.most for kind in kinds_of_op(op))

    def _may_be_input(self, tensor: Any, inputs: Sequence[Any]) -> bool:
        """Whether a tensor may be an input beside others."""
        used = sum(one.dtype == tensor.dtype for one in inputs)
        return (
            sum(tensor.dtype in one for one in self._dtypes) > used
            and tensor.shape.is_fully_defined()
            and not functions.is_handle(tensor.dtype)
        )

    def _needs(self, pending: Sequence[Any], inputs: Sequence[Any]) -> int:
        """How many inputs there are at least, where these are decided and those are not."""
        closed = (one for one in pending if self._is_open(one) and not self._opens(one))
        return len(inputs) + sum(1 for _ in closed)

    def _from(  # noqa: PLR0913, PLR0917 - the state of the search
        self,
        root: Any,
        pending: tuple[Any, ...],
        inputs: tuple[Any, ...],
        opened: dict[str, Any],
        count: Counter[str],
        most: int,
    ) -> Iterator[Cut]:
        self._steps -= 1
        if self._steps <= 0 or len(opened) > self._size or self._needs(pending, inputs) > most:
            return
        if not pending:
            found = {kind for kind, n in count.items() if n}
            if inputs and found >= self._words.needed:
                yield Cut(root, inputs, frozenset(opened), frozenset(found))
            return
        tensor = min(pending, key=lambda one: self._order[one.op.name])
        rest = tuple(one for one in pending if one.name != tensor.name)
        if not self._is_open(tensor):
            yield from self._from(root, rest, inputs, opened, count, most)
            values = self._constants.value(tensor)
            if values is None or values.size == 1 or tensor.op.type in OF_SIZES:
                return
        elif tensor.op.name in opened:  # by another of its outputs
            yield from self._from(root, rest, inputs, opened, count, most)
            return
        elif self._opens(tensor):
            own = count + Counter(kinds_of_op(tensor.op))
            if all(n <= self._words.most[kind] for kind, n in own.items()):
                known = {one.name for one in (*rest, *inputs)}
                operands = self._operands(tensor)
                added = {one.name: one for one in operands if one.name not in known}
                grown = {**opened, tensor.op.name: tensor}
                yield from self._from(root, (*rest, *added.values()), inputs, grown, own, most)
        if tensor is not root and len(inputs) < most and self._may_be_input(tensor, inputs):
            yield from self._from(root, rest, (*inputs, tensor), opened, count, most)
