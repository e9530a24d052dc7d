"""`@Composite`: from a declaration and a function to an op of this process.

The pipeline in plain lines: parse the declaration (by TensorFlow, in the runtime), check it against
the function, translate the body, optimize it, serialize it, register it. Whatever is wrong is an
error here, at the place in the source, and nothing is registered then.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from composite.aot import own_kernels
from composite.autodiff import gradient
from composite.binding import environment, native, program_marks
from composite.binding.program_marks import ProgramMarks
from composite.binding.records import record
from composite.compiler import declaration
from composite.compiler.errors import RefusedError
from composite.compiler.errors.declarations import (
    NO_OP_DEF,
    NO_STRINGS,
    NOT_COMPOSED,
    TWO_OPS,
    UNDECLARED,
)
from composite.compiler.schema import OpSchema
from composite.compiler.source import CompositeSyntaxError, Source
from composite.jit import worker
from composite.ops.op import CompositeOp, DecoratedOp
from composite.ops.registry import OPS
from composite.profiling import statistics
from composite.vectorize import batching


class DeclarationTypeError(RefusedError, TypeError):
    """An argument of `@Composite` that is no string, or no list of strings."""


class Composite:
    """Decorator that makes a Python function the body of a TensorFlow op.

    With only the name of a TensorFlow op, the function becomes a composition of that op: the
    declaration is TensorFlow's, and calls make nodes of a composite op `Composite<op_name>`. Nodes
    of the TensorFlow op run the composition if `replace` is given, and, on a CPU, for dtypes for
    which TensorFlow has no kernel. See docs/compositions.md.

    Args:
        op_name: the op's name in graphs, in CamelCase.
        inputs, outputs: "name: type" for each, in TensorFlow's OpDef grammar ("x: T",
            "xs: N * float").
        attrs: "name: type = default" for each; a call passes them as keyword arguments.
        derived_attrs: the attributes that the inputs determine ("T: {float, half}").
        replace: for a composition: from now on, it replaces TensorFlow's op in this process, in
            each graph that is instantiated and in each eager call.

    The parameters of the function are the inputs, followed by the attributes, with these names and
    in this order. The function stays available as `op.python_function`. A mistake in the
    declaration or in the body raises CompositeSyntaxError with file, line and column.
    """

    def __init__(  # noqa: PLR0913 - an op has that many parts
        self,
        op_name: str,
        inputs: Sequence[str] | None = None,
        attrs: Sequence[str] | None = None,
        derived_attrs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        *,
        replace: bool = False,
    ) -> None:
        if not isinstance(op_name, str):
            raise DeclarationTypeError(
                NO_STRINGS, f"Composite: op_name must be a string, not {op_name!r}"
            )
        self._op_name = op_name
        self._bare = inputs is None and outputs is None and attrs is None and derived_attrs is None
        if replace and not self._bare:
            raise DeclarationTypeError(
                NOT_COMPOSED,
                f"Composite: replace=True is for a composition of an op of TensorFlow, and "
                f"{op_name} is declared here",
            )
        self._replace = replace
        self._inputs = _strings("inputs", inputs)
        self._attrs = _strings("attrs", attrs)
        self._derived = _strings("derived_attrs", derived_attrs)
        self._outputs = _strings("outputs", outputs)

    def __call__(self, function: Callable[..., Any]) -> DecoratedOp:
        """Compiles and registers `function`; returns the op."""
        try:
            return self._define(function)
        except CompositeSyntaxError as error:
            # It points into the author's file; the way there through ours is of no use to anybody.
            raise error.with_traceback(None) from None

    def _define(self, function: Callable[..., Any]) -> DecoratedOp:
        from composite.compiler import frontend, tfr

        source = Source.of(function)
        schema = self._schema(source)
        declaration.check(schema, source, self._op_name if self._bare else "the declaration")
        _check_place(schema, function, source, self._op_name)
        module = frontend.translate(source, schema, _resolve)
        tfr.optimize(module)
        program = tfr.serialize(module, schema, place=source.place)
        program_marks.add_origin(program, _origin(function, source))
        if self._bare:
            program_marks.add_composition(program, self._op_name, replaces=self._replace)
        op = DecoratedOp(program, function, functools.partial(tfr.print_module, module), OPS)
        register(op)
        worker.start()
        return op

    def _schema(self, source: Source) -> OpSchema:
        if self._bare:
            return self._declared_by_tensorflow(source)
        request = record(
            op=self._op_name,
            inputs=self._inputs,
            attrs=[*self._derived, *self._attrs],
            outputs=self._outputs,
        )
        try:
            parsed = native.call("composite_parse_declaration", request)
        except tf.errors.OpError as error:
            strings = [*self._derived, *self._attrs, *self._inputs, *self._outputs]
            source.fail(_blamed(source, strings, error.message), NO_OP_DEF, error.message)
        return OpSchema.from_op_def(parsed, derived=[_name(text) for text in self._derived])

    def _declared_by_tensorflow(self, source: Source) -> OpSchema:
        try:
            request = record(op=self._op_name)
            declared = native.call("composite_composition_declaration", request)
        except tf.errors.NotFoundError as error:
            message = f"{error.message}: declare the inputs and outputs of a new one"
            source.fail(source.tree.decorator_list[0], UNDECLARED, message)
        except tf.errors.InvalidArgumentError as error:
            source.fail(source.tree.decorator_list[0], NOT_COMPOSED, error.message)
        return OpSchema.from_op_def(declared)


def _strings(what: str, value: Sequence[str] | None) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str) or not all(isinstance(text, str) for text in value):
        raise DeclarationTypeError(
            NO_STRINGS,
            f'Composite: {what} must be a list of strings such as ["x: T"], not {value!r}',
        )
    return list(value)


def _name(text: str) -> str:
    return text.partition(":")[0].strip()


def _blamed(source: Source, strings: Sequence[str], message: str) -> Any:
    """The node of the declaration string that an error of the runtime names."""
    for text in strings:
        if text in message:
            return declaration.declared_at(source, _name(text))
    decorators = source.tree.decorator_list
    return decorators[0] if decorators else source.tree


def _resolve(value: Any) -> CompositeOp | None:
    """What the frontend asks about a called object: is it an op with a body?"""
    return value if isinstance(value, CompositeOp) else None


def register(op: CompositeOp) -> None:
    """Makes an op known to TensorFlow: its program, its gradient; retires an older version."""
    set_up()
    with OPS.lock:
        native.call("composite_register", op.program)
        OPS.define(op)


@functools.cache
def set_up() -> None:
    """Done once, before the first op: settings checked, the runtime told of the compiler."""
    environment.check()
    OPS.on_new_name(gradient.register)
    OPS.on_new_name(batching.register)
    OPS.on_new_name(statistics.register)
    OPS.on_use_kernel(own_kernels.use)
    worker.announce_compiler()


def _check_place(
    schema: OpSchema, function: Callable[..., Any], source: Source, op_name: str
) -> None:
    """Refuses a second definition of a name, unless it is the same definition, edited."""
    older = OPS.current(schema.op_name)
    if not isinstance(older, DecoratedOp):
        return  # a loaded library's op: the runtime compares digests
    if ProgramMarks.of(older.program).origin == _origin(function, source):
        return
    if older.composes == op_name:
        message = f"{op_name} has a composition at {older.place} already: remove one of them"
    else:
        message = (
            f"{schema.op_name} is defined at {older.place} already, and here again "
            f"({source.place}): give one of them another name"
        )
    source.fail(
        source.tree.decorator_list[0] if source.tree.decorator_list else source.tree,
        TWO_OPS,
        message,
    )


def _origin(function: Callable[..., Any], source: Source) -> str:
    """What makes two definitions one, edited: the file, or the notebook, and the function's name.

    Lines move when a file is edited, and a notebook gives every run of a cell a file name of its
    own; there the module has to do.
    """
    file = source.file if os.path.exists(source.filename) else source.module
    return f"{file}#{function.__qualname__}"
