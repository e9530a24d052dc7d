"""Programs for the runtime's tests, built node by node: what the compiler writes, without it.

Values are names (str). Every other Python value given where a value stands becomes a constant; a
string constant is `region.const("text")`. Not a language: a test says each node.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.function_pb2 import FunctionDef, FunctionDefLibrary
from tensorflow.core.framework.op_def_pb2 import OpDef

from tests.runtime.kernel_support import attr, node, request


def constant_attr(value: Any) -> AttrValue:
    """The `value` attribute of tfr.constant."""
    result = AttrValue()
    if isinstance(value, tf.DType):
        result.type = value.as_datatype_enum
    elif isinstance(value, tf.TensorShape):
        result.shape.CopyFrom(value.as_proto())
    elif isinstance(value, (float, np.ndarray, np.generic)):
        # A Python float is a double scalar: attributes hold float32 only.
        array = np.asarray(value, np.float64) if isinstance(value, float) else value
        result.tensor.CopyFrom(tf.make_tensor_proto(array))
    elif value is not None:
        result.CopyFrom(attr(value))
    return result


class Region:
    """One function of a program; every method adds a node and gives the name of its value."""

    def __init__(self, owner: Program, function: FunctionDef) -> None:
        self._owner = owner
        self.function = function

    def emit(self, kind: str, values: Sequence[Any] = (), size: Any = None, **attrs: Any) -> Any:
        inputs = [v if isinstance(v, str) else self.const(v) for v in values]
        name = str(len(self.function.node_def))
        added = self.function.node_def.add(name=name, op=kind)
        added.input.extend(inputs)
        added.attr["_loc"].s = f"ops.py:{self._owner.next_line()}:5".encode()
        for key, value in attrs.items():
            added.attr[key].CopyFrom(value if isinstance(value, AttrValue) else attr(value))
        if size is None:
            return name
        added.attr["size"].i = size
        return [name if i == 0 else f"{name}:{i}" for i in range(size)]

    def const(self, value: Any) -> str:
        if value is None:
            return str(self.emit("tfr.constant"))
        return str(self.emit("tfr.constant", value=constant_attr(value)))

    def list(self, *items: Any) -> str:
        return str(self.emit("tfr.list", items))

    def item(self, value: str, index: Any) -> str:
        return str(self.emit("tfr.item", [value, index]))

    def unpack(self, value: str, size: int) -> Any:
        return self.emit("tfr.unpack", [value], size)

    def call(self, op: str, program: str = "", node_name: str = "", **arguments: Any) -> str:
        extra = {"_composite_program": program} if program else {}
        if node_name:
            extra["_name"] = node_name
        keywords = [key.rstrip("_") if key.endswith("__") else key for key in arguments]
        return str(self.emit("tfr.call", [*arguments.values()], op=op, keywords=keywords, **extra))

    def unary(self, operator: str, a: Any) -> str:
        return str(self.emit("tfr.unary", [a], operator=operator))

    def binary(self, operator: str, a: Any, b: Any) -> str:
        return str(self.emit("tfr.binary", [a, b], operator=operator))

    def compare(self, operator: str, a: Any, b: Any) -> str:
        return str(self.emit("tfr.compare", [a, b], operator=operator))

    def branch(
        self, condition: Any, captures: Sequence[str], then: str, orelse: str, size: int
    ) -> Any:
        regions: Mapping[str, Any] = {"then": then, "else": orelse}
        return self.emit("tfr.if", [condition, *captures], size, **regions)

    def apply(self, region: str, captures: Sequence[str], size: int) -> Any:
        return self.emit("tfr.apply", captures, size, region=region)

    def shape(self, value: str) -> str:
        return str(self.emit("tfr.shape", [value]))

    def dim(self, value: str, index: int) -> str:
        return self.item(self.shape(value), index)

    def raises(self, error: str, *pieces: Any) -> None:
        self.emit("tfr.raise", pieces, error=error)

    def returns(self, **values: str) -> None:
        for key, value in values.items():
            self.function.ret[key] = value


class Program(Region):
    """An op and its body. `op`'s declaration is parsed by the runtime."""

    def __init__(
        self,
        op: str,
        inputs: Sequence[str] = (),
        attrs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        *,
        place: str = "ops.py:1",
        stateful: bool = False,
        origin: str = "",
    ) -> None:
        self.library = FunctionDefLibrary()
        self._line = 1
        super().__init__(self, self.library.function.add())
        declaration = node("", op, inputs=[*inputs], attrs=[*attrs], outputs=[*outputs])
        op_def = OpDef.FromString(request("composite_parse_declaration", declaration))
        op_def.is_stateful = stateful
        self.function.signature.CopyFrom(op_def)
        self.op = op
        self._marks = {"_place": place, "_module": "ops", "_origin": origin}

    def next_line(self) -> int:
        self._line += 1
        return self._line

    def region(self, name: str, parameters: Sequence[str], results: int) -> Region:
        function = self.library.function.add()
        function.signature.name = name
        for parameter in parameters:
            function.signature.input_arg.add(name=parameter)
        for i in range(results):
            function.signature.output_arg.add(name=str(i))
        return Region(self, function)

    def finish(self) -> FunctionDefLibrary:
        """The program with its digest and place."""
        bare = self.library.SerializeToString(deterministic=True)
        result = FunctionDefLibrary.FromString(bare)
        marks = {"_digest": hashlib.sha256(bare).hexdigest()[:32], **self._marks}
        for key, value in marks.items():
            if value:
                result.function[0].attr[key].s = value.encode()
        return result

    def register(self) -> str:
        """Registers the op; returns its digest."""
        done = self.finish()
        request("composite_register", done)
        return done.function[0].attr["_digest"].s.decode()


def give(region: Region, *values: str) -> None:
    """The results of a region, in order."""
    region.returns(**{str(i): value for i, value in enumerate(values)})


def types_of(**types: tf.DType) -> dict[str, AttrValue]:
    return {key: AttrValue(type=value.as_datatype_enum) for key, value in types.items()}


def sum_of_rows(op: str) -> Program:
    """A program that has to know how many rows there are before it can be expanded."""
    p = Program(op, ["x: float"], [], ["o: float"])
    parts = p.call("Split", split_dim=0, value="x", num_split=p.dim("x", 0))
    p.returns(o=p.call("AddN", inputs=parts))
    return p


def expand(op: str, shapes: Sequence[Any] | None = None, **attrs: Any) -> FunctionDefLibrary:
    """composite_expand; a shape of None is of unknown rank, a dim of None unknown."""
    call = node("", op, **attrs)
    for shape in shapes if shapes is not None else ():
        proto = tf.TensorShape(shape).as_proto()
        call.attr["_in_shapes"].list.shape.add().CopyFrom(proto)
    return FunctionDefLibrary.FromString(request("composite_expand", call))


def ops_of(library: FunctionDefLibrary) -> list[str]:
    """The ops of an expansion in order."""
    return [n.op for n in library.function[0].node_def]


def run_expansion(library: FunctionDefLibrary, *inputs: Any) -> Any:
    """Runs an expansion as a TF function; numpy results in a list."""
    function = library.function[0]
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session(graph=graph) as session:
        gdef = tf.compat.v1.GraphDef(versions=graph.as_graph_def().versions)
        gdef.library.CopyFrom(library)
        call = gdef.node.add(name="call", op="PartitionedCall")
        call.attr["f"].func.name = function.signature.name
        call.attr["Tin"].list.SetInParent()
        for arg, value in zip(function.signature.input_arg, inputs, strict=True):
            call.attr["Tin"].list.type.append(arg.type)
            source = gdef.node.add(name=f"in_{arg.name}", op="Const")
            source.attr["dtype"].type = arg.type
            source.attr["value"].tensor.CopyFrom(
                tf.make_tensor_proto(value, tf.dtypes.as_dtype(arg.type))
            )
            call.input.append(source.name)
        for arg in function.signature.output_arg:
            call.attr["Tout"].list.type.append(arg.type)
        tf.import_graph_def(gdef, name="")
        names = [f"call:{i}" for i in range(len(function.signature.output_arg))]
        return session.run(names)
