"""Regions in tf.functions that XLA compiles and that Python calls.

TensorFlow hands such a function over to XLA as it was traced; the runtime's graph pass sees only
those that another function calls. So the regions are formed here, when the function was traced, in
a copy: that is what calls run. What gradients are made of, what is saved, and what other functions
call stays as it was traced.

Written against private APIs of TF 2.21; tests/composite/jit/test_xla_functions.py pins them.
"""

from __future__ import annotations

import functools
from typing import Any

from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.python.eager import context
from tensorflow.python.eager.polymorphic_function import atomic_function, transform

from composite.binding import native
from composite.binding.log import logger
from composite.ops import call, function_op, functions

_MUST_COMPILE = "_XlaMustCompile"
_WITH = "_with_regions"  # ends the names of copies


@functools.cache
def arrange() -> None:
    """Has each function that is traced for XLA from now on get the regions that are asked for.

    The runtime knows who asks: the calling thread, the process, or the function's name.
    """
    transform.CONCRETE_FUNCTION_CALLBACKS.append(_traced)


def _traced(function: Any) -> None:
    """Called with each ConcreteFunction that was traced. Never raises: the function is complete."""
    # What is traced inside of another function is prepared with that one.
    if not context.executing_eagerly():
        return
    try:
        definition = function.inference_fn.cached_definition
        # Not by its key alone, which would add one to what TensorFlow keeps.
        if _MUST_COMPILE in definition.attr and definition.attr[_MUST_COMPILE].b:
            _form(function, definition)
    except Exception as error:  # noqa: BLE001 - it runs without regions
        logger.warning("%s has no regions: %s", function.name, error)


def _form(function: Any, definition: Any) -> None:
    """Has calls of a function run a copy with regions, if it has any."""
    known = {f.signature.name: f for f in function.graph.as_graph_def().library.function}
    name = definition.signature.name
    known[name] = definition
    request = FunctionDefLibrary(function=[known[n] for n in functions.reachable(name, known)])
    changed = FunctionDefLibrary.FromString(native.call("composite_form_xla_regions", request))
    if not changed.function:
        return
    known |= {f.signature.name: f for f in changed.function}
    made = FunctionDefLibrary(function=[known[n] for n in functions.reachable(name, known)])
    # The functions of composites and regions are named by what they compute: copies are shared.
    copies = {
        n: n if function_op.is_canonical(n) else f"{n}{_WITH}" for n in map(_name, made.function)
    }
    functions.rename(made.function, copies)
    main, *others = made.function
    call.add_functions(FunctionDefLibrary(function=filter(_is_shared, others)))
    for inner in others:
        if not _is_shared(inner):
            call.register_function(function, inner)
    call.add_functions(FunctionDefLibrary(function=[main]))
    traced = function.inference_fn
    function._inference_function = atomic_function.AtomicFunction(
        main.signature.name,
        traced._bound_context,
        traced.function_type,
        children=traced.children,
        call_options=traced.call_options,
        cached_graph=function.graph,
    )


def _name(definition: Any) -> str:
    return str(definition.signature.name)


def _is_shared(definition: Any) -> bool:
    return function_op.is_canonical(_name(definition))
