"""The front end: the source of a decorated function -> a TFR module.

source -> gast (compiler.source) -> scopes and liveness -> statements and expressions -> MLIR.
Functions that the body calls are translated in their place, each from its own source.

Not for: optimizing the module or making a program of it (compiler.tfr); what an operator does to
the values of a call (the runtime's expansion).
"""

from __future__ import annotations

import inspect
from typing import Any

from composite.compiler.errors.statements import RETURN_COUNT
from composite.compiler.frontend.analysis import flow
from composite.compiler.frontend.analysis.desugar import desugar
from composite.compiler.frontend.analysis.scopes import Scopes
from composite.compiler.frontend.bindings import Translation
from composite.compiler.frontend.body import Body
from composite.compiler.frontend.calls import Resolve
from composite.compiler.frontend.exits import OutputsExit
from composite.compiler.frontend.expressions import Expressions
from composite.compiler.frontend.inline import Inliner
from composite.compiler.frontend.statements import Statements
from composite.compiler.schema import OpSchema
from composite.compiler.source import Source
from composite.compiler.tfr import Builder, dialect

__all__ = ["Resolve", "translate"]


def translate(source: Source, schema: OpSchema, resolve: Resolve) -> Any:
    """Translate a body to a TFR module, verified by MLIR and not yet optimized.

    Args:
        source: the function; its parameters are those of the schema (`declaration.check`).
        schema: the op's declaration.
        resolve: gives for a captured object the composite op that it is, or None.

    Raises:
        CompositeSyntaxError: for what the source shows to be wrong or unsupported, with its place.
    """
    body = Body.of(Scopes(desugar(source)))
    _check_returns(body, schema)
    with dialect.lock, dialect.context():
        builder = Builder()
        translation = Translation(body, builder, {})
        try:
            with builder.at(translation.place(source.tree)):
                _function(translation, schema, resolve)
        finally:
            builder.clear()
        _describe(builder, source)
        builder.module.operation.verify()
        return builder.module


def _check_returns(body: Body, schema: OpSchema) -> None:
    definition, mistakes = body.source.tree, body.scopes.mistakes
    # A statement that is given up may hold the `return`.
    if schema.outputs and not mistakes and not any(map(flow.returns, definition.body)):
        message = f"`{body.name}` returns nothing: return its outputs"
        mistakes.note(definition, body.source.error(definition, RETURN_COUNT, message))


def _function(translation: Translation, schema: OpSchema, resolve: Resolve) -> None:
    builder = translation.builder
    outputs = ["sequence" if output.is_list else "tensor" for output in schema.outputs]
    function = builder.function(schema.op_name, parameter_types(schema), outputs, schema.parameters)
    block = function.regions[0].blocks[0]
    translation.environment.update(zip(schema.parameters, block.arguments, strict=True))
    for argument, element in zip(block.arguments, element_types(schema), strict=True):
        builder.note_elements(argument, element)
    inliner = Inliner(resolve)
    expressions = Expressions(translation, inliner)
    exit_ = OutputsExit(translation, expressions, schema)
    with builder.into(block):
        builder.give_back(Statements(translation, expressions, exit_, inliner.serials).body())


def parameter_types(schema: OpSchema) -> list[str]:
    """Return the static type of each parameter of the function of an op."""
    types = ["sequence" if arg.is_list else "tensor" for arg in schema.inputs]
    for attr in schema.attrs:
        listed = attr.type.startswith("list(")
        types.append(
            "sequence" if listed else {"shape": "dims", "tensor": "tensor"}.get(attr.type, "attr")
        )
    return types


def element_types(schema: OpSchema) -> list[str]:
    """Return the static type of the elements of each parameter, which matters for lists."""
    types = ["tensor"] * len(schema.inputs)
    special = {"list(shape)": "dims", "list(tensor)": "tensor"}
    return types + [special.get(attr.type, "attr") for attr in schema.attrs]


def _describe(builder: Builder, source: Source) -> None:
    """Keep with the module what its program says about its source."""
    documentation = inspect.getdoc(source.function) or ""
    builder.describe(
        {"tfr.doc": documentation, "tfr.module": source.module, "tfr.place": source.place}
    )
