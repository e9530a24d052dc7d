"""An op's expansions as graphs, for the inputs that it may have."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from composite.ops import functions
from composite.ops.op import CompositeOp
from composite.recognition import anchors
from composite.recognition.reading import Constants
from composite.recognition.vocabulary import kinds_of_op

Array = np.ndarray[Any, Any]
Slots = tuple[int | Array, ...]  # of each input: which of those of a cut, or its value
_LONGEST_LIST = 2
_MOST_CONSTANTS = 2
_NEUTRAL = (1.0, 0.0)  # what an input may be where nothing is there


@dataclass(frozen=True, eq=False)
class Expansion:
    """What a call of an op computes.

    Attributes:
        body: its nodes.
        constants: the values in them; has the graph.
        outputs: its results there.
        inputs: the tensors that stand for its inputs.
        kinds: those of its nodes.
    """

    body: functions.Body
    constants: Constants
    outputs: tuple[Any, ...]
    inputs: tuple[Any, ...]
    kinds: frozenset[str]


class Arrangement(NamedTuple):
    """How many tensors each input of an op takes: None for one, a number for a list."""

    lengths: tuple[int | None, ...]

    @property
    def tensors(self) -> int:
        """How many tensors in all."""
        return sum(1 if n is None else n for n in self.lengths)

    def of_each(self, of_inputs: Sequence[Any]) -> list[Any]:
        """What is said of the inputs, said of each tensor."""
        pairs = zip(self.lengths, of_inputs, strict=True)
        return [one for n, one in pairs for _ in range(1 if n is None else n)]

    def nested(self, flat: Sequence[Any]) -> list[Any]:
        """Tensors in a row as the op takes them."""
        given = iter(flat)
        return [next(given) if n is None else [next(given) for _ in range(n)] for n in self.lengths]


def arrangements(op: CompositeOp) -> list[Arrangement]:
    """How an op may be given its inputs: lists with few tensors."""
    lengths = [range(_LONGEST_LIST + 1) if arg.is_list else (None,) for arg in op.schema.inputs]
    return [Arrangement(one) for one in itertools.product(*lengths)]


class Expansions:
    """The expansions of an op, each made once."""

    def __init__(self, op: CompositeOp) -> None:
        self._op = op
        self._made: dict[Any, Expansion | None] = {}
        self._refused: dict[Any, bool] = {}
        self._is_decided_by_dims = anchors.has_conditions_on_dims(op.program)

    def refuses(
        self,
        arrangement: Arrangement,
        ranks: Sequence[int],
        dtypes: Sequence[Any],
        attrs: Mapping[str, Any],
    ) -> bool:
        """Whether the op refuses inputs of these ranks and dtypes, whatever their sizes are."""
        key = (arrangement, tuple(ranks), tuple(dtypes), tuple(attrs.items()))
        if key not in self._refused:
            pairs = zip(ranks, dtypes, strict=True)
            specs = [tf.TensorSpec([None] * rank, dtype) for rank, dtype in pairs]
            self._refused[key] = self._is_refused(arrangement.nested(specs), attrs)
        return self._refused[key]

    def _is_refused(self, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> bool:
        if self._is_decided_by_dims:
            return False
        try:
            self._op.expand(*inputs, **attrs)
        except tf.errors.InvalidArgumentError:
            return True
        except (TypeError, ValueError, tf.errors.OpError):
            return False  # which may depend on sizes
        return False

    def at(
        self, arrangement: Arrangement, inputs: Sequence[Any], attrs: Mapping[str, Any]
    ) -> Expansion | None:
        """The expansion for these inputs, tf.TensorSpecs or arrays; None if it has none."""
        specs = [one if isinstance(one, tf.TensorSpec) else tf.constant(one) for one in inputs]
        parts = tuple(
            (x.dtype, *x.shape) if isinstance(x, tf.TensorSpec) else repr(x) for x in specs
        )
        key = (arrangement, parts, tuple(attrs.items()))
        if key not in self._made:
            self._made[key] = self._expanded(arrangement, specs, attrs)
        return self._made[key]

    def _expanded(
        self, arrangement: Arrangement, specs: Sequence[Any], attrs: Mapping[str, Any]
    ) -> Expansion | None:
        try:
            library = self._op.expand(*arrangement.nested(specs), **attrs)
            body = functions.body(library)
            for name, one in zip(body.inputs, specs, strict=True):
                node = next(node for node in body.graph_def.node if node.name == name)
                node.attr["shape"].shape.CopyFrom(tf.TensorShape(one.shape).as_proto())
            graph = functions.imported(body.graph_def)
        except (TypeError, ValueError, tf.errors.OpError):
            return None  # a call that the op refuses
        constants = Constants(graph)
        ops = (op for op in graph.get_operations() if op.type != "Placeholder" and op.outputs)
        return Expansion(
            body,
            constants,
            tuple(graph.get_tensor_by_name(name) for name in body.outputs),
            tuple(graph.get_tensor_by_name(f"{name}:0") for name in body.inputs),
            frozenset(
                kind
                for op in ops
                if constants.value(op.outputs[0]) is None
                for kind in kinds_of_op(op)
            ),
        )


def assignments(
    op: CompositeOp, arrangement: Arrangement, inputs: Sequence[Any], width: Sequence[int]
) -> Iterator[Slots]:
    """The ways to give an op the inputs of a cut, each at least once.

    An input that is missing is a constant of ones or zeros, of the shape `width`.
    """
    missing = arrangement.tensors - len(inputs)
    if not 0 <= missing <= _MOST_CONSTANTS:
        return
    dtypes = arrangement.of_each([arg.dtype for arg in op.schema.inputs])
    for order in itertools.permutations(range(arrangement.tensors), len(inputs)):
        slots: list[Any] = [None] * arrangement.tensors
        for index, slot in enumerate(order):
            slots[slot] = index
        if any(
            dtypes[slot] not in (0, inputs[index].dtype.as_datatype_enum)
            for index, slot in enumerate(order)
        ):
            continue
        left = [slot for slot, one in enumerate(slots) if one is None]
        dtype = inputs[0].dtype
        if any(dtypes[slot] not in (0, dtype.as_datatype_enum) for slot in left):
            continue
        neutral = [np.full(width, one, dtype.as_numpy_dtype) for one in _NEUTRAL]
        again = [k for k, one in enumerate(inputs) if one.dtype == dtype]
        choices = [*again, *neutral] if dtype.is_floating else again
        for filled in itertools.product(choices, repeat=len(left)):
            yield tuple({**dict(enumerate(slots)), **dict(zip(left, filled, strict=True))}.values())
