"""An op looked for in a graph: which part of it, with which inputs and attributes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tensorflow as tf

from composite.ops.op import CompositeOp
from composite.recognition import attributes, differences
from composite.recognition.algebra import Algebra, Form, TooLargeError, reached
from composite.recognition.cuts import Cut, Cuts
from composite.recognition.expansions import (
    Arrangement,
    Expansion,
    Expansions,
    Slots,
    arrangements,
    assignments,
)
from composite.recognition.reading import Constants, Reader, UnreadableError
from composite.recognition.rules import RULES
from composite.recognition.view import View
from composite.recognition.vocabulary import vocabulary

Attributes = Mapping[str, Any]
_UNLIKE = 4  # terms of two forms that only one has: more are no near miss
_DTYPES = (tf.float32, tf.float64, tf.half, tf.bfloat16, tf.int32, tf.int64, tf.bool)
_MOST_TRIES = 64  # expansions that are compared with a part


@dataclass(frozen=True, eq=False)
class Call:
    """An op in the place of a part of a graph.

    Attributes:
        cut: the part.
        outputs: the tensors that the op gives, the root of the cut first.
        arrangement: which input takes which of the tensors.
        slots: of each tensor that the op is given, which input of the cut it is, or its value.
        attrs: the attributes.
    """

    cut: Cut
    outputs: tuple[Any, ...]
    arrangement: Arrangement
    slots: Slots
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the comparison of a part with the op came to; the same for parts of one structure.

    Attributes:
        call: the op in the place of the part, None where it computes something else.
        distance: from the most similar expansion, where there is no call.
        forms: of the part and of that expansion.
        refusal: why the op that was found must not stand there.
    """

    call: Call | None
    distance: float = _UNLIKE + 1.0
    forms: tuple[Form, Form] | None = None
    refusal: str | None = None

    def call_at(self, cut: Cut) -> Call | None:
        """The op in the place of a part of this structure."""
        if self.call is None or self.call.cut is cut:
            return self.call
        return replace(self.call, cut=cut, outputs=(cut.root,))

    def reason(self, cut: Cut) -> str | None:
        """The first difference of a part to the most similar expansion, where it is similar."""
        if self.forms is None:
            return self.refusal
        names = dict(enumerate(one.op.name for one in cut.inputs))
        return differences.difference(*self.forms, names)


class Search:
    """An op looked for in the graphs of a model."""

    def __init__(self, op: CompositeOp) -> None:
        self.op = op
        self.expansions = Expansions(op)
        self.words = vocabulary(op)
        self._arrangements = arrangements(op)
        self._dtypes = _dtypes(op, max(self._arrangements, key=lambda one: one.tensors))
        self.is_seen = False  # all structures were expanded for some part
        self._kinds: dict[Any, set[frozenset[str]]] = {}
        self._roles: dict[Any, tuple[Hashable, ...]] = {}
        self._outcomes: dict[bytes, Outcome] = {}
        outputs = op.schema.outputs
        self._is_local = len(outputs) == 1 and not outputs[0].is_list

    def cuts(self, view: View) -> Cuts:
        """The parts of a graph in which the op may be."""
        return Cuts(view, self.words, self._dtypes)

    @property
    def most_inputs(self) -> int:
        """How many tensors the op may take."""
        return max(one.tensors for one in self._arrangements)

    def outcome(self, cut: Cut, view: View) -> Outcome:
        """The comparison of a part with the op, once for all parts of a structure."""
        if not self._is_local:  # other results may be anywhere in the graph
            return _Match(self, cut, view.constants).outcome()
        key = view.structure(cut.root, cut.inputs)
        if key not in self._outcomes:
            self._outcomes[key] = _Match(self, cut, view.constants).outcome()
        return self._outcomes[key]

    def expansion(
        self,
        arrangement: Arrangement,
        slots: Slots,
        attrs: Attributes,
        inputs: Sequence[Any],
    ) -> Expansion | None:
        """The expansion for tensors of a graph; None if the op refuses them."""
        taken = [inputs[one] if isinstance(one, int) else one for one in slots]
        specs = [tf.TensorSpec(one.shape, one.dtype) for one in taken]
        return self.expansions.at(arrangement, specs, attrs)

    def refuses(
        self,
        arrangement: Arrangement,
        slots: Slots,
        attrs: Attributes,
        inputs: Sequence[Any],
    ) -> bool:
        """Whether the op refuses tensors of such ranks."""
        taken = [inputs[one] if isinstance(one, int) else one for one in slots]
        ranks = [len(one.shape) for one in taken]
        return self.expansions.refuses(
            arrangement, ranks, [tf.as_dtype(one.dtype) for one in taken], attrs
        )

    def may_be(self, cut: Cut, arrangement: Arrangement, attrs: Attributes) -> bool:
        """Whether earlier expansions of the kind had the same functions in them."""
        known = self._kinds.get(self._structure(arrangement, attrs))
        return known is None or _essential(cut.kinds) in known

    def is_unlike(self, cut: Cut) -> bool:
        """Whether none of the op's expansions, all of whose kinds are known, is like a part."""
        known = self._kinds.values()
        return self.is_seen and bool(known) and _essential(cut.kinds) not in set().union(*known)

    def note(self, expansion: Expansion, arrangement: Arrangement, attrs: Attributes) -> None:
        """Notes what is in an expansion."""
        known = self._kinds.setdefault(self._structure(arrangement, attrs), set())
        known.add(_essential(expansion.kinds))

    def _structure(self, arrangement: Arrangement, attrs: Attributes) -> Hashable:
        floats = {a.name for a in self.op.schema.attrs if a.type == "float"}
        return arrangement, tuple((n, v) for n, v in attrs.items() if n not in floats)

    def roles(
        self, cut: Cut, arrangement: Arrangement, slots: Slots, attrs: Attributes
    ) -> tuple[Hashable, tuple[Hashable, ...] | None]:
        """What identifies the roles of inputs in the op, and these where they are known."""
        ranks = tuple(len(cut.inputs[k].shape) for k in slots if isinstance(k, int))
        key = (arrangement, ranks, tuple(attrs.items()))
        return key, self._roles.get(key)

    def note_roles(self, key: Hashable, roles: tuple[Hashable, ...]) -> None:
        """Notes in what roles an op has its inputs."""
        self._roles[key] = roles

    def arranged(self, cut: Cut) -> Iterator[tuple[Arrangement, Slots]]:
        """The ways to give the op the inputs of a part, those without constants first."""
        width = cut.root.shape[-1:].as_list() if cut.root.shape.rank else []
        for one in sorted(self._arrangements, key=lambda a: abs(a.tensors - len(cut.inputs))):
            for slots in assignments(self.op, one, cut.inputs, width):
                yield one, slots


def _dtypes(op: CompositeOp, most: Arrangement) -> list[frozenset[Any]]:
    """The dtypes that each input of an op may have, where it is given as many as it may be."""
    allowed = {a.name: a.allowed or _DTYPES for a in op.schema.derived}
    of_args = []
    for arg in op.schema.inputs:
        one = (tf.as_dtype(arg.dtype),) if arg.dtype else allowed.get(arg.type_attr, _DTYPES)
        of_args.append(frozenset(one))
    return most.of_each(of_args)


def _essential(kinds: frozenset[str]) -> frozenset[str]:
    """Kinds without those that only some spellings of an expression have."""
    return kinds - {"log", "Max"}


class _Match:
    """A part of a graph beside the op's expansions."""

    def __init__(self, search: Search, cut: Cut, constants: Constants) -> None:
        self._search = search
        self._cut = cut
        self._constants = constants.without(cut.inputs)
        dtypes = [one.dtype for one in (cut.root, *cut.inputs)]
        narrow = any(one.is_floating and one.size == 2 for one in dtypes)
        self._algebra = Algebra(1e-2 if narrow else 2e-6)
        self._symbols = [
            self._algebra.atom("symbol", (k,), (), tuple(one.shape.as_list()))
            for k, one in enumerate(cut.inputs)
        ]
        self._tries = 0
        self._known_roles: dict[Form, list[Hashable]] = {}
        self._distance = _UNLIKE + 1.0
        self._nearest: tuple[Form, Form] | None = None
        self._refusal: str | None = None

    def outcome(self) -> Outcome:
        """What the op computes there, or how nearly it does."""
        call = self._found()
        if call is None:
            return Outcome(None, self._distance, self._nearest, self._refusal)
        return Outcome(call)

    def _found(self) -> Call | None:
        """The op with the attributes with which it computes the part; None if there are none."""
        if self._search.is_unlike(self._cut):
            return None
        form = self._form(self._constants, self._cut.root, dict(self._named()))
        if form is None or not {one.atom for one in self._symbols} <= reached(form):
            return None
        numbers = attributes.numbers_in(self._cut, self._constants.graph, self._constants)
        schema = self._search.op.schema
        others = list(attributes.fractions(schema, numbers))
        similar = []
        for structure in attributes.structures(schema, numbers):
            for arrangement, slots in self._search.arranged(self._cut):
                attrs = {**structure, **others[0]}
                alike = self._compared(form, arrangement, slots, attrs)
                if alike is True:
                    return self._call(arrangement, slots, attrs)
                if alike is not None:
                    similar.append((alike, structure, arrangement, slots))
        self._search.is_seen = self._tries < _MOST_TRIES
        similar.sort(key=lambda one: one[0])
        for _, structure, arrangement, slots in similar:
            for floats in others[1:]:
                attrs = {**structure, **floats}
                if self._compared(form, arrangement, slots, attrs) is True:
                    return self._call(arrangement, slots, attrs)
        return None

    def _named(self) -> Iterator[tuple[str, Form]]:
        return ((x.name, s) for x, s in zip(self._cut.inputs, self._symbols, strict=True))

    def _form(self, constants: Constants, root: Any, symbols: Mapping[str, Form]) -> Form | None:
        try:
            return Reader(self._algebra, constants, symbols, RULES).form(root)
        except (UnreadableError, TooLargeError, ArithmeticError):
            return None

    def _compared(
        self, form: Form, arrangement: Arrangement, slots: Slots, attrs: Attributes
    ) -> float | bool | None:
        """True where the op computes a form; else how far from it it is, None for very far."""
        if self._tries >= _MOST_TRIES or not self._search.may_be(self._cut, arrangement, attrs):
            return None
        is_plain = {one for one in slots if isinstance(one, int)} == {*range(len(slots))}
        key, roles = self._search.roles(self._cut, arrangement, slots, attrs)
        if is_plain and roles is not None:
            mine = self._roles_in(form)
            if tuple(mine[k] for k in slots if isinstance(k, int)) != roles:
                return float(_UNLIKE)
        if self._search.refuses(arrangement, slots, attrs, self._cut.inputs):
            return None
        expansion = self._search.expansion(arrangement, slots, attrs, self._cut.inputs)
        if expansion is None or expansion.outputs[0].shape != self._cut.root.shape:
            return None
        self._search.note(expansion, arrangement, attrs)
        if _essential(expansion.kinds) != _essential(self._cut.kinds):
            return None
        self._tries += 1
        wanted = self._form(
            expansion.constants, expansion.outputs[0], self._given(expansion, slots)
        )
        if is_plain and roles is None and wanted is not None:
            its = self._roles_in(wanted)
            self._search.note_roles(key, tuple(its[k] for k in slots if isinstance(k, int)))
        if wanted is form:
            return True
        if wanted is None:
            return None
        is_alike = differences.skeleton(wanted) == differences.skeleton(form)
        distance = 0.5 if is_alike else float(differences.distance(form, wanted))
        if distance < self._distance:
            self._distance, self._nearest = distance, (form, wanted)
        return distance

    def _roles_in(self, form: Form) -> list[Hashable]:
        """Of each symbol, what it is in a form, whatever the others are."""
        if form not in self._known_roles:
            atoms = [symbol.terms[0][0][0][0] for symbol in self._symbols]
            self._known_roles[form] = [differences.skeleton(form, one) for one in atoms]
        return self._known_roles[form]

    def _given(self, expansion: Expansion, slots: Slots) -> dict[str, Form]:
        """The symbols, or values, of an expansion's inputs."""
        pairs = zip(expansion.inputs, slots, strict=True)
        return {
            x.name: self._symbols[one] if isinstance(one, int) else self._algebra.array(one)
            for x, one in pairs
        }

    def _call(self, arrangement: Arrangement, slots: Slots, attrs: Attributes) -> Call | None:
        """The op, where all of its results are in the graph."""
        expansion = self._search.expansion(arrangement, slots, attrs, self._cut.inputs)
        assert expansion is not None, "it was compared"
        outputs = [self._cut.root]
        for result in expansion.outputs[1:]:
            wanted = self._form(expansion.constants, result, self._given(expansion, slots))
            one = None if wanted is None else self._beside(result, wanted)
            if one is None:
                self._nearest = None
                self._refusal = f"nothing in the graph is result {len(outputs)} of the op"
                return None
            outputs.append(one)
        return Call(self._cut, tuple(outputs), arrangement, slots, attrs)

    def _beside(self, result: Any, wanted: Form) -> Any | None:
        """The tensor that is another result."""
        graph = self._constants.graph
        named = dict(self._named())
        for op in graph.get_operations():
            for one in op.outputs:
                is_like = one.dtype == result.dtype and one.shape == result.shape
                if is_like and self._form(self._constants, one, named) is wanted:
                    return one
        return None
