"""The `__call__` of an op: its real parameters, and TensorFlow's fast path for an eager call.

Written against private APIs of TF 2.21, `TFE_Py_FastPathExecute` and what it raises, as the
wrappers that TF generates for its own ops are. tests/composite/ops/test_call.py pins them.

Not for: a call whose arguments have to be converted first, and nodes of graphs (call.py); ops that
have attributes which are tensors, and calls whose options would be lost (traced_call.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import context, core
from tensorflow.python.framework import ops

from composite.binding import settings
from composite.ops import call, call_arguments, direct, dispatch, saving_call, traced_call

_TEMPLATE = """
def __call__({parameters}):
    _ctx = _context._context or _context.context()
    _here = _ctx._thread_local_data
    if _here.is_eager:
        if {as_node}:
            try:
                return _traced({op_name!r}, {{{arguments}}}, _self.stamps(), name)
            except _NoTensors:
                return _dispatched(_self, {{{arguments}}}, name)
        if {saves} and not _no_tape():
            _outputs = _saving(_self.digest, {{{arguments}}})
            if _outputs is not None:
                return {results}
{directly}
        try:
            return {fast}
        except _NotOk as _error:
            _raise(_error, name)
        except _Fallback:
            pass
        try:
            return _eager({op_name!r}, {{{arguments}}}, name)
        except _NotOk as _error:
            _raise(_error, name)
        except _Symbolic:
            pass
        except _NoTensors:
            return _dispatched(_self, {{{arguments}}}, name)
    try:
        return _graph({op_name!r}, {{{arguments}}}, _self.stamps(), name)
    except _NoTensors:
        return _dispatched(_self, {{{arguments}}}, name)
"""


# Of ops whose calls may go past TensorFlow's eager runtime.
_DIRECTLY = """
        _outputs = _direct(_ctx, _here{values})
        if _outputs is NotImplemented:
            _learn(({inputs}), ({attrs}))
        elif _outputs is not None:
            return _outputs
"""


def compile_call(
    definition: Any,
    inputs: Sequence[str],
    attrs: Sequence[str],
    defaults: Mapping[str, Any],
    *,
    stamped: bool = False,
) -> Callable[..., Any]:
    """The `__call__` of one op: `(self, *inputs, *, **attrs, name=None)` with its real parameters.

    Text that is compiled, as dataclasses and TensorFlow's own generator do it: binding arguments
    generically takes longer than all the rest of an eager call. The names are an OpDef's (they
    match [A-Za-z][A-Za-z0-9_]*), so no text of a user gets in, and none begins with an underscore,
    as everything else here does. `_self.stamps()` gives the attributes for graph nodes; if calls
    have to be `stamped`, eager ones are nodes, too.
    """
    parameters = ["_self", *inputs, "*"]
    parameters += [f"{a}=_default_{a}" if a in defaults else a for a in attrs]
    values = {name: name for name in (*inputs, *attrs)}
    for arg in definition.input_arg:
        if arg.type == tf.resource.as_datatype_enum:
            values[arg.name] = f"_resource({arg.name})"
    always = stamped or traced_call.needed(definition)
    saving = None if always or _has_lists(definition) else saving_call.made_for(definition)
    served = None
    if not always and direct.DirectOp.serves(definition):
        served = direct.DirectOp(definition, inputs, attrs)
    text = _TEMPLATE.format(
        parameters=", ".join([*parameters, "name=None"]),
        op_name=definition.name,
        as_node="True" if always else "_options and _carries_options()",
        saves="_saving.learned" if saving else "False",
        results="tuple(_outputs)" if len(definition.output_arg) > 1 else "_outputs[0]",
        directly=_direct_statements(inputs, attrs) if served else "",
        fast=_fast_expression(definition, values, attrs),
        arguments=_named(values),
    )
    scope = _scope(defaults, saving, served)
    exec(compile(text, f"<composite op {definition.name}>", "exec"), scope)
    function: Callable[..., Any] = scope["__call__"]
    do_not_convert(function)
    return function


def _scope(
    defaults: Mapping[str, Any],
    saving: saving_call.SavingCalls | None,
    served: direct.DirectOp | None,
) -> dict[str, Any]:
    """What the text of a call refers to."""
    return {f"_default_{a}": value for a, value in defaults.items()} | {
        "_context": context,
        "_fast": pywrap_tfe.TFE_Py_FastPathExecute,
        "_NotOk": core._NotOkStatusException,
        "_Fallback": core._FallbackException,
        "_Symbolic": core._SymbolicException,
        "_raise": ops.raise_from_not_ok_status,
        "_eager": call.eager_call,
        "_graph": call.graph_call,
        "_options": settings.ENTERED,
        "_carries_options": traced_call.carries_options,
        "_traced": traced_call.traced_call,
        "_NoTensors": (TypeError, ValueError),
        "_dispatched": dispatch.call,
        "_resource": call_arguments.resource,
        "_no_tape": pywrap_tfe.TFE_Py_TapeSetIsEmpty,
        "_saving": saving,
        "_direct": served and served.call,
        "_learn": served and served.learn,
    }


def do_not_convert(entity: Any) -> None:
    """Has AutoGraph call a function (or the instances of a class) as it is.

    tf.autograph.experimental.do_not_convert does it by a wrapper, which would cost each eager call
    more than the call; this is the mark that the wrapper carries.
    """
    entity.autograph_info__ = {}


def _direct_statements(inputs: Sequence[str], attrs: Sequence[str]) -> str:
    return _DIRECTLY.format(
        values="".join(f", {name}" for name in (*inputs, *attrs)),
        inputs="".join(f"{name}, " for name in inputs),
        attrs="".join(f"{name}, " for name in attrs),
    )


def _fast_expression(definition: Any, values: Mapping[str, str], attrs: Sequence[str]) -> str:
    arguments = [repr(definition.name), "name"]
    arguments += (text for name, text in values.items() if name not in attrs)
    arguments += (text for a in attrs for text in (repr(a), a))
    fast = f"_fast(_ctx, {', '.join(arguments)})"
    if len(definition.output_arg) < 2:
        return fast  # a tensor, or one list: already what the user gets
    if _has_lists(definition):
        # The flat outputs have to be cut by attributes that only `bind` derives.
        return f"_eager({definition.name!r}, {{{_named(values)}}}, name)"
    return f"tuple({fast})"


def _has_lists(definition: Any) -> bool:
    """Whether any output is a list."""
    return any(arg.number_attr or arg.type_list_attr for arg in definition.output_arg)


def _named(values: Mapping[str, str]) -> str:
    """The items of a dict, as text."""
    return ", ".join(f"{name!r}: {text}" for name, text in values.items())
