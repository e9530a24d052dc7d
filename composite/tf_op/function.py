"""A function of a library as a TensorFlow op, and its gradient.

Not for: finding it (module.py); where its outputs' shapes come from (output_shapes.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from composite.binding import native
from composite.binding.records import attr_value
from composite.ops import call, call_arguments, compiled_call, direct, recorded
from composite.tf_op.output_shapes import Outputs, Shapes

_OPS = {
    ("CPU", False): "CompositeTvmCall",
    ("CPU", True): "CompositeStatefulTvmCall",
    ("GPU", False): "CompositeGpuTvmCall",
    ("GPU", True): "CompositeStatefulGpuTvmCall",
}
OPS = tuple(_OPS.values())

# What nodes have beside the op's attributes where XLA may call the function, and its value
# (composite/runtime/foreign/xla_op.cc).
_XLA, _CUSTOM_CALL = "_composite_xla", "custom_call"

# By the attribute `function`, so that a node of a model that was loaded finds its gradient.
_GRADIENTS: dict[str, Callable[..., Any]] = {}


def tvm_device(device: str) -> str:
    """The attribute `tvm_device` for a device: "" for those that TensorFlow has itself."""
    return "" if device in ("CPU", "GPU") else device


def split(function: bytes) -> tuple[str, str]:
    """The library and the name that the attribute `function` of a node says."""
    library, _, name = function.decode().partition(":")
    return library, name


class TvmFunction:
    """A function of a library, as an op. `Module.func` makes it.

    Attributes:
        library: what nodes call the library by: the SHA-256 of its file.
        name: the function's.
    """

    def __init__(  # noqa: PLR0913 - what Module.func is told
        self,
        library: str,
        name: str,
        outputs: Outputs,
        *,
        stateful: bool,
        device: str = "CPU",
        xla: str | None = None,
    ) -> None:
        if xla not in (None, _CUSTOM_CALL):
            raise ValueError(f"xla={xla!r}: None, or {_CUSTOM_CALL!r}")
        if xla is not None and device != "CPU":
            raise ValueError(f"xla={xla!r}: code of XLA calls functions on the CPU alone")
        if device != "CPU" and outputs.returns:
            raise ValueError(
                f"{name} returns its outputs: on {device} only functions run that are passed them"
            )
        self.library, self.name = library, name
        self._stamps = {} if xla is None else {_XLA: attr_value(xla)}
        self._outputs = outputs
        self._op_name = _OPS["GPU" if device == "GPU" else "CPU", stateful]
        self._tvm_device = tvm_device(device)
        self._shapes_apart = device == "GPU"  # they lie in the host's memory
        self._single = outputs.single
        fixed = outputs.fixed()
        self._fixed = None if fixed is None else self._attrs(fixed)
        self._call_fixed = None if self._fixed is None else self._compiled(self._fixed)
        self._direct: direct.OpCalls | None = None
        self._inputs = 0  # of direct calls
        self._may_prepare = device == "CPU" and self._call_fixed is not None

    def _compiled(self, attrs: Mapping[str, Any]) -> Callable[..., Any]:
        """`call(function, inputs, name=)`, with these attributes."""
        definition, names = call.op_def(self._op_name), tuple(attrs)
        if not self._shapes_apart:
            return compiled_call.compile_call(definition, ("inputs",), names, attrs)
        made = compiled_call.compile_call(definition, ("inputs", "given"), names, attrs)
        return lambda function, inputs, name: made(function, inputs, (), name=name)

    def _attrs(self, shapes: Shapes) -> dict[str, Any]:
        device = {"tvm_device": self._tvm_device} if self._tvm_device else {}
        return {"function": f"{self.library}:{self.name}", **self._outputs.attrs(shapes), **device}

    def stamps(self) -> dict[str, Any]:
        """The attributes of nodes beside the op's own, for the compiled call."""
        return self._stamps

    def __call__(self, *inputs: Any, output_shape: Any = None, name: str | None = None) -> Any:
        """Calls the function: one node while tracing, else one eager op.

        Args:
            *inputs: tensors, or what converts to some, of any number.
            output_shape: for this call, as `Module.func` takes it; None: what that was given.
            name: of the node.

        Returns:
            The output, or a list of them if the output dtypes are a list.

        Raises:
            ValueError: `output_shape` is none.
            tf.errors.OpError: what the function raises: InvalidArgumentError for its TypeError and
                ValueError (a wrong number of arguments, dtype or shape), InternalError for others.
        """
        if self._direct is not None and output_shape is None and len(inputs) == self._inputs:
            eager, here = call.eager_state()
            outputs = self._direct.call(eager, here, *inputs) if here.is_eager else None
            if outputs is not None:
                if self._single:
                    return outputs
                return [*outputs] if type(outputs) is tuple else [outputs]
        if self._call_fixed is None or output_shape is not None:
            outputs = self._with_shapes(inputs, output_shape, name)
        else:
            outputs = self._call_fixed(self, inputs, name=name)
            if self._may_prepare and tf.executing_eagerly():
                self._prepare(inputs)
        if self._single:
            return outputs[0]
        return outputs if self._outputs.dtypes else None

    apply = __call__

    def _prepare(self, inputs: Sequence[Any]) -> None:
        """Has eager calls with tensors of these dtypes be direct from here on.

        After the first call that did not fail: wrong dtypes prepare nothing.
        """
        if not self._outputs.dtypes or not call.are_eager_tensors(inputs):
            return
        self._may_prepare = False
        definition = call.op_def(self._op_name)
        bound = call_arguments.bind(definition, {"inputs": inputs, **(self._fixed or {})})
        try:
            made = direct.of_op(self._op_name, bound.attrs, len(inputs))
        except direct.RefusedError:
            return
        prepared = direct.OpCalls.new(self._op_name, len(inputs), 0)
        prepared.add(made, (), call.flat_attrs(definition, bound.attrs), _fail)
        prepared.close()
        self._inputs, self._direct = len(inputs), prepared

    def _with_shapes(self, inputs: Sequence[Any], output_shape: Any, name: str | None) -> Any:
        given = self._outputs.shape if output_shape is None else output_shape
        shapes = self._outputs.shapes(inputs, given)
        attrs = self._attrs(shapes)
        made = _compiled_for(self._op_name, self._shapes_apart, tuple(attrs))
        if self._shapes_apart:
            return made(self, inputs, shapes.given, **attrs, name=name)
        return made(self, [*inputs, *shapes.given], **attrs, name=name)

    def gradient(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Gives the function a gradient: `function(op, *output_gradients)`, for use as a decorator.

        It returns a gradient, or None, for each of `op.inputs`, of which those for shapes that the
        call was given may be left out. It may call any op: another function of a library, a
        composite. It holds for all nodes of this library and name, those of loaded models included.
        """
        _GRADIENTS[f"{self.library}:{self.name}"] = function
        return function

    def __repr__(self) -> str:
        dtypes = ", ".join(tf.as_dtype(dtype).name for dtype in self._outputs.dtypes)
        return f"<TVM function {self.name} of library {self.library[:16]}: {dtypes}>"


compiled_call.do_not_convert(TvmFunction)


@functools.cache
def _compiled_for(op_name: str, shapes_apart: bool, attrs: tuple[str, ...]) -> Callable[..., Any]:
    """`call(function, inputs, **attrs, name=)`; with the shapes behind the inputs, or apart."""
    inputs = ("inputs", "given") if shapes_apart else ("inputs",)
    return compiled_call.compile_call(call.op_def(op_name), inputs, attrs, {})


def _fail(code: int, message: str) -> None:
    raise native.error(code, message)


def _gradient(op: Any, *output_gradients: Any) -> Sequence[Any]:
    key = recorded.attrs_of(op)["function"].s
    function = _GRADIENTS.get(key.decode())
    if function is None:
        library, name = split(key)
        raise LookupError(
            f"the function {name} of the library {library} has no gradient: give it one by "
            f"`module.func({name!r}, ...).gradient(function)`"
        )
    gradients = function(op, *output_gradients)
    several = isinstance(gradients, (list, tuple))
    gradients = list(gradients) if several else [gradients]
    return gradients + [None] * (len(op.inputs) - len(gradients))


native.library()  # has the ops: a model that is loaded next may have nodes of them
for _op_name in OPS:
    tf.RegisterGradient(_op_name)(_gradient)
