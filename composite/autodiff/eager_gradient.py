"""Gradients of eager calls.

What is the same for all calls with the same attributes is found once, so that a call costs little
Python beside what TensorFlow's tape takes.

A call whose gradient is asked for a second time is made by a saving forward from then on, see
`saving_call`: not at once, since many are asked for once, and it takes a further backward.

Not for nodes of graphs: see `gradient`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from composite.autodiff import backward, families
from composite.binding import settings
from composite.ops import call, recorded, saving_call
from composite.ops.registry import OPS

# Sets of attributes of an op whose backwards are versions of CompositeCall, which may have kernels
# and are never forgotten. Those of further ones are functions that go when others are used.
LASTING = 64

_MOST_PLANS = 4 * backward.LIMIT


class _Plan(NamedTuple):
    """What calls that differ in their shapes alone have in common."""

    request: bytes  # see families.request
    way: backward.Way
    wanted: tuple[int, ...]  # the outputs whose gradients come in


class _Saving(NamedTuple):
    """The backward that reads what a call has saved."""

    plan: _Plan  # which gradient it is
    backward: backward.Backward
    plans: dict[tuple[Hashable, ...], _Plan]  # as `_plans`, of calls that it saved for


_plans: dict[tuple[Hashable, ...], _Plan] = {}
_lasting: dict[str, set[bytes]] = {}  # by op: the requests that have lasting backwards
# Calls whose gradients were asked for; whether it was looked for what to save for them.
_asked: dict[tuple[_Plan, tuple[families.Shape, ...]], bool] = {}


def is_eager(op: Any) -> bool:
    """Whether what a gradient function was given is an eager call, and its gradient is one too."""
    return tf.executing_eagerly() and not isinstance(op, tf.Operation)


def gradients(
    op_name: str, op: Any, output_gradients: Sequence[Any], digest: str
) -> list[Any | None]:
    """The derived gradient of each input of an eager call of a version. Raises as `backward`."""
    given = tuple([gradient is not None for gradient in output_gradients])
    skipped = tuple(op.skip_input_indices or ())
    saved = recorded.saved_for(op)
    # All calls that one forward saved for have the same attributes.
    plans, attrs = (_plans, recorded.key_of(op)) if saved is None else (saved.gradient.plans, ())
    strict = settings.calls_are_strict()
    key = (op_name, digest, OPS.underived(), given, skipped, strict, attrs)
    plan = plans.get(key)
    if plan is None:
        plan = _plan(op_name, op, digest, given, skipped)
        plan = plan._replace(way=plan.way._replace(strict=strict))
        if len(plans) >= _MOST_PLANS:
            plans.clear()
        plans[key] = plan
    if not plan.wanted:
        return [None] * len(op.inputs)
    seeds = (output_gradients[i] for i in plan.wanted)
    tensors = [g if isinstance(g, tf.Tensor) else tf.convert_to_tensor(g) for g in seeds]
    # Of what was saved no tape knows what it was made of. A gradient of this one needs that.
    is_last = not call.is_recorded()
    if saved is not None and is_last and saved.gradient.plan == plan:
        return saved.gradient.backward(op, tensors, {}, saved.tensors)
    shapes = tuple(map(recorded.shape_of, op.inputs))
    if is_last:
        _learn(op_name, op, plan, digest, shapes)
    found = families.serving(op_name, plan.request, shapes, plan.way, traced=False)
    return found(op, tensors, {})


def _learn(
    op_name: str, op: Any, plan: _Plan, digest: str, shapes: tuple[families.Shape, ...]
) -> None:
    """Has further calls like this one save what this gradient of them needs."""
    calls = saving_call.of(op_name)
    if calls is None or not plan.way.lasts or _asked.get((plan, shapes)):
        return
    if plan.way.strict:  # such calls save nothing
        return
    again = (plan, shapes) in _asked
    if len(_asked) >= _MOST_PLANS:
        _asked.clear()
    # What a call computes with stays the same where it has to be deterministic.
    _asked[plan, shapes] = again and not call.is_deterministic()
    if not _asked[plan, shapes]:
        return
    way = plan.way._replace(keeps=True)
    found = families.serving(op_name, plan.request, shapes, way, traced=False)
    if found.saving_forward is not None:
        save = found.saving_forward

        def run(inputs: Sequence[Any]) -> list[Any]:
            return save(inputs, {})

        attrs = recorded.own_attrs(op)
        forward = saving_call.SavingForward(run, len(op.outputs), attrs, _Saving(plan, found, {}))
        calls.learn(digest, op, forward)


def _plan(
    op_name: str, op: Any, digest: str, given: Sequence[bool], skipped: Sequence[int]
) -> _Plan:
    attrs = recorded.attrs_of(op)
    used = tuple(
        one and families.has_gradient(y.dtype) for one, y in zip(given, op.outputs, strict=True)
    )
    needed = tuple(i not in skipped for i in range(len(op.inputs)))
    request = families.request(op_name, attrs, digest)
    known = _lasting.setdefault(backward.name_of(op_name, attrs), set())
    if len(known) < LASTING:
        known.add(request)
    way = backward.Way(used, needed, keeps=False, lasts=request in known)
    return _Plan(request, way, tuple(i for i, use in enumerate(used) if use))
