"""The op object: what a decorated name is bound to, and what a loaded library gives.

It is called like a function and knows its declaration, its body and its version.

Not for: how a call reaches TensorFlow (call.py), what a body becomes (composite.compiler), which
version a name stands for (registry.py), how ops are made from functions and from libraries
(decorator.py, aot/loading.py).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.core.framework.tensor_pb2 import TensorProto

from composite.binding import native, settings
from composite.binding.call_request import CallRequest
from composite.binding.program_marks import ProgramMarks
from composite.binding.records import PROGRAM, AttrValue
from composite.compiler import declared_text
from composite.compiler.schema import OpSchema
from composite.ops import call_arguments, compiled_call, functions
from composite.ops.dispatch import Dispatchable

_LARGEST_CONSTANT = 1024  # elements: what a body can look at are shapes, axes and the like


Gradient = Callable[..., Any]  # (op, *output_gradients) -> a gradient or None for each input


class Versions(Protocol):
    """What an op asks of the registry that it is defined in (registry.py)."""

    def version(self, digest: str) -> CompositeOp:
        """The object of a version of any op."""

    def set_gradient(self, digest: str, function: Gradient) -> None:
        """Has a function stand in for the derived gradient of a version."""

    def use_kernel(self, op: CompositeOp, kernel: Any, call: Mapping[str, Any], **how: Any) -> Any:
        """Has a kernel of the author's serve the calls of an op that are stated so."""


class _Call:
    """`__call__` of an op's class until it is first asked for: most ops of a library never are."""

    def __init__(self, schema: OpSchema) -> None:
        self._schema = schema

    def __get__(self, instance: CompositeOp | None, owner: type[CompositeOp]) -> Any:
        """The compiled function, bound to the op; it stands in the class from now on."""
        function = _compiled(self._schema)
        if owner.__dict__["__call__"] is self:
            owner.__call__ = function  # type: ignore[method-assign]
        return function.__get__(instance, owner)


def _compiled(schema: OpSchema, *, stamped: bool = False) -> Callable[..., Any]:
    return compiled_call.compile_call(
        schema.op_def,
        [arg.name for arg in schema.inputs],
        [attr.name for attr in schema.attrs],
        {attr.name: attr.default for attr in schema.attrs if attr.has_default},
        stamped=stamped,
    )


class CompositeOp(Dispatchable):
    """An op with a body.

    Call it with its inputs, by position or by name, and its attributes by name; `name=` names the
    node. An input may be anything that converts to a tensor. A call returns what the body returns:
    a tensor, a list for a list output, a tuple for several outputs. It raises `tf.errors`, and
    TypeError or ValueError for arguments that do not match, as TensorFlow's own ops do.

    Attributes:
        op_name: the name of the op in TensorFlow.
        schema: its declaration (OpSchema).
        digest: identifies this version of the body; nodes store it.
        place: file and line of the body, "ops.py:12".
        doc: the author's docstring; `__doc__` has the declaration as well.
        composes: the TensorFlow op of which this is a composition, or "".
        program: the compiled body that the runtime has (FunctionDefLibrary); treat it as read-only.
        signatures: the calls for which `composite.build` compiles kernels; see `add_signature`.
        kernels: the author's own, in the order in which they were given; see `use_kernel`.
    """

    schema: OpSchema  # set by __new__
    _op: ClassVar[CompositeOp]  # the instance of an op's own class

    def __init__(
        self, program: FunctionDefLibrary, name: str, doc: str, module: str, versions: Versions
    ) -> None:
        marks = ProgramMarks.of(program)
        self.program = program
        self.op_name: str = self.schema.op_name
        self.digest = marks.digest
        self.place = marks.place
        self.composes = marks.composes
        self.signatures: list[dict[str, Any]] = []
        self.kernels: list[Any] = []
        self.__name__ = self.__qualname__ = name
        self.doc = doc
        self.__doc__ = declared_text.document(doc, self.schema)
        self.__module__ = module
        self.__signature__ = declared_text.signature(self.schema)
        self.__annotations__ = declared_text.types(self.schema)
        self._stamp = {PROGRAM: AttrValue(s=self.digest.encode())}
        self._versions = versions

    def __new__(cls, program: FunctionDefLibrary, *_: Any, **__: Any) -> CompositeOp:
        """Makes an instance of a class of its own."""
        # A class for each op, since Python looks `__call__` up in the class, and an eager call has
        # no time to dispatch further.
        schema = OpSchema.from_op_def(program.function[0].signature)
        own: type[CompositeOp] = type(
            cls.__name__, (cls,), {"__call__": _Call(schema), "__doc__": cls.__doc__}
        )
        compiled_call.do_not_convert(own)
        own._op = object.__new__(own)
        own._op.schema = schema
        return own._op

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the op; see the class."""
        raise NotImplementedError  # each op's own class has its own: see __new__

    def __reduce__(self) -> str:
        # As a function: copies are the op itself, a pickle holds its name.
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<composite op {self.op_name}: {self.__name__}{self.schema.signature()}>"

    def get_config(self) -> dict[str, Any]:
        """What a saved Keras model says of the op, beside the name that it is registered by.

        Where the op is missing, Keras prints all of this, and `needs` is what a reader has to know.
        """
        needs = (
            f"{self.op_name} is defined by {self.__module__} ({self.place}): import that module, "
            "or composite.load that library, before the model is loaded"
        )
        return {
            "digest": self.digest, "module": self.__module__, "place": self.place, "needs": needs
        }  # fmt: skip

    @classmethod
    def from_config(cls, _config: Mapping[str, Any]) -> CompositeOp:
        """The op whose class this is: the version that this process has."""
        return cls._op

    @property
    def op_def(self) -> Any:
        """The OpDef proto; treat it as read-only."""
        return self.schema.op_def

    @property
    def mlir(self) -> str:
        """The TFR module of the body, as text."""
        raise NotImplementedError

    def stamps(self) -> Mapping[str, AttrValue]:
        """The attributes, besides the op's own, of a node that is made now."""
        chosen = settings.node_attrs()
        return self._stamp | chosen if chosen else self._stamp

    def gradient(self, function: Gradient) -> Gradient:
        """Decorator: `function(op, *output_gradients)` replaces the derived gradient.

        As with tf.RegisterGradient, `op.inputs`, `op.outputs` and `op.get_attr(name)` are those of
        the call, and the function returns a gradient, or None, for each input. It applies to this
        version of the op in this process. A library that is built from the op does not contain it;
        asking that library for a gradient raises an error that says so.
        """
        self._versions.set_gradient(self.digest, function)
        return function

    def expand(self, *args: Any, **attrs: Any) -> FunctionDefLibrary:
        """The TensorFlow ops that a call with these arguments stands for.

        Takes the arguments of a call; an input may also be a tf.TensorSpec. function[0] of the
        result is the expansion, with one argument and one result for each tensor; the other
        functions are those that it calls. Raises the errors of the body. FailedPreconditionError
        "not yet" names a dim or a value that has to be known.
        """
        reply = native.call("composite_expand", self.request(*args, **attrs).to_node_def())
        return FunctionDefLibrary.FromString(reply)

    def request(self, *args: Any, **attrs: Any) -> CallRequest:
        """A call's attributes, shapes and known values, as the runtime takes them."""
        arguments = dict(self.__signature__.bind(*args, **attrs).arguments)
        arguments.pop("name", None)
        with tf.Graph().as_default():
            for arg in self.schema.inputs:
                arguments[arg.name] = tf.nest.map_structure(stand_in, arguments[arg.name])
            bound = call_arguments.bind(self.op_def, arguments)
            shapes = tuple(x.shape for x in bound.inputs)
            constants = tuple(constant(x) for x in bound.inputs)
        return CallRequest(
            op=self.op_name,
            attrs=bound.attrs,
            program=self.digest,
            in_shapes=shapes,
            constants=constants,
        )

    def callees(self) -> list[CompositeOp]:
        """The composites that the body calls, in the order of its nodes."""
        nodes = (node for function in self.program.function for node in function.node_def)
        digests = (n.attr[PROGRAM].s.decode() for n in nodes if PROGRAM in n.attr)
        return [self._versions.version(digest) for digest in dict.fromkeys(digests)]

    def add_signature(self, **arguments: Any) -> None:
        """States a call for which a library that is built from this op has a kernel.

        Each input is a tf.TensorSpec, or a pair (dtype, dims). A dim is an int, or, if it varies,
        None or a name; dims with the same name have the same size. Attributes are given as in a
        call.
        """
        self.__signature__.bind(**arguments)  # TypeError names what is missing or unknown
        self.signatures.append(arguments)

    def use_kernel(
        self,
        kernel: Any,
        call: Mapping[str, Any],
        *,
        function: str | None = None,
        device: str = "CPU",
        launches: Sequence[Any] = (),
    ) -> None:
        """Gives the op a kernel of your own for stated calls. The body stays what the op means.

        The kernel is run on the inputs that our own kernels are checked with, and compared with the
        body; measured beside it; and runs where it is no slower, in this process and in libraries
        that are built from the op. It is a function of TVM's C ABI, `__tvm_ffi_<function>`, which
        is passed the inputs and then the outputs, as DLTensors, and fills the outputs.

        Args:
            kernel: the path of a shared library or an object file (native code that is run); or
                what TVM has: a PrimFunc (of TVMScript, or te.create_prim_func), an IRModule, what
                tvm.compile returned, or a function of te tensors, which is called with a tensor for
                each input and returns the output, or a list of them. For a GPU, the path of a cubin
                or of PTX. A shared library, and code that assumes tensors to be aligned, cannot be
                built into another library.
            call: the arguments of the calls, as `add_signature` takes them.
            function: its name, which a kernel that is the only one of its module need not be told.
            device: "CPU", or the level of the GPUs that the kernel is for: "cuda:sm_90".
            launches: of a kernel for a GPU, what is launched, in order (composite.Launch).

        Raises:
            ValueError: it computes something else than the body, with the first difference; or
                the calls or the device are none that a kernel can be for.
            TypeError: `kernel` is none of these.
            FileNotFoundError: there is no such file.
        """
        self.__signature__.bind(**call)  # TypeError names what is missing or unknown
        given = self._versions.use_kernel(
            self, kernel, call, function=function, device=device, launches=launches
        )
        self.kernels.append(given)
        self.signatures.append(dict(call))

    def as_layer(
        self, variables: Mapping[str, Any] | None = None, *, name: Any = None, dtype: Any = None,
        **attrs: Any,
    ) -> Any:  # fmt: skip
        """A Keras layer that calls the op; some of its inputs are variables of the layer.

        The layer is saved by the name of the op, which the process that loads it has to have. In
        mixed precision the op is called in the dtype in which the layer computes.

        Args:
            variables: for each input that is a variable its shape, or what `add_weight` takes:
                {"shape": (64,), "initializer": "zeros", "trainable": True}. A dim ("x", -1) is the
                size of the last axis of the input x.
            name: the layer's.
            dtype: the layer's dtype, or its policy.
            attrs: the op's attributes.

        Returns:
            A keras.layers.Layer, called with a tensor for each other input: one alone, several in a
            list in the order of the declaration, or in a dict by name.

        Raises:
            TypeError: a name is none of the op's, or all inputs are variables.
        """
        from composite.ops.keras_layer import CompositeLayer

        stated = {
            one: value if isinstance(value, Mapping) else {"shape": value}
            for one, value in (variables or {}).items()
        }
        return CompositeLayer(self, stated, attrs, name=name, dtype=dtype)

    def retire(self) -> None:
        """A newer version takes the name: from now on eager calls of this object go by a graph.

        An eager op cannot carry a stamp, and without one it would mean the new body. As a function
        of one stamped node it still means this one, at the price of a function call.
        """
        type(self).__call__ = _compiled(self.schema, stamped=True)  # type: ignore[method-assign]


class DecoratedOp(CompositeOp):
    """An op whose body is a Python function of this process."""

    def __init__(
        self,
        program: FunctionDefLibrary,
        function: Callable[..., Any],
        mlir: Callable[[], str],
        versions: Versions,
    ) -> None:
        doc = inspect.getdoc(function) or ""
        super().__init__(program, function.__name__, doc, function.__module__, versions)
        self.__qualname__ = function.__qualname__
        self._function = function
        self._mlir = mlir

    @functools.cached_property
    def python_function(self) -> Callable[..., Any]:
        """The decorated function itself: the body in Python, with TensorFlow's ops.

        It takes attributes by keyword as the op does, and as many by position as it declares. One
        that is not given has its declared default.
        """
        given = inspect.signature(self._function).parameters
        defaults = {attr.name: attr.default for attr in self.schema.attrs if attr.has_default}
        if all(given[name].default is not inspect.Parameter.empty for name in defaults):
            return self._function
        return _with_defaults(self._function, defaults)

    @functools.cached_property
    def mlir(self) -> str:
        """The TFR module of the body, as text."""
        return self._mlir()


def _with_defaults(function: Callable[..., Any], defaults: dict[str, Any]) -> Callable[..., Any]:
    """A function whose parameters have defaults."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind_partial(*args, **kwargs).arguments
        return function(**{**defaults, **given})

    return called


def stand_in(value: Any) -> Any:
    """What an input is in a scratch graph: its value if it is small and known, else its type."""
    if isinstance(value, tf.TensorSpec) or (
        tf.is_tensor(value) and functions.is_handle(value.dtype)
    ):
        return tf.compat.v1.placeholder(value.dtype, value.shape)
    if not tf.is_tensor(value):
        return value  # converted as in a call
    known = _small(tf.get_static_value(value))
    if known is not None:
        return tf.constant(known, value.dtype)
    return tf.compat.v1.placeholder(value.dtype, value.shape)


def call_of(node: tf.Operation) -> CallRequest:
    """The call of a node of a graph, with all that the graph knows of its inputs."""
    return CallRequest.of_node(
        node.type,
        node.node_def.attr,
        in_shapes=tuple(x.shape for x in node.inputs),
        constants=tuple(constant(x) for x in node.inputs),
    )


def constant(tensor: Any) -> TensorProto:
    """The value of a tensor as expansions may look at it; DT_INVALID where it is not known."""
    known = _small(tf.get_static_value(tensor))
    return TensorProto() if known is None else tf.make_tensor_proto(known)


def _small(value: Any) -> Any:
    """A value that a body may look at: integers, and not many; else None."""
    if value is None or isinstance(value, bytes):  # a scalar of strings comes without a dtype
        return None
    if value.dtype.kind not in "iub" or value.size > _LARGEST_CONSTANT:
        return None
    return value
