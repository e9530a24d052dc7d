"""A partitioned function as a module of Relax: kernels as external functions, the rest as calls."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from composite.compiler.tvm import Kernel
from composite.editing.scope import Edge
from composite.hybrid import runtime, stages, subgraphs
from composite.hybrid.packing import value_of
from composite.hybrid.regions import Partition
from composite.hybrid.transfer import is_shared
from composite.hybrid.values import Dims, Value
from composite.kernels import shapes


class Emitter:
    """One module under construction."""

    def __init__(self, partition: Partition) -> None:
        """Of a partitioned function."""
        from tvm import relax

        self._partition = partition
        self._graph, self._values = partition.graph, partition.values
        self._builder = relax.BlockBuilder()
        self._made: dict[Edge, Any] = {}  # variables
        self._constants: dict[str, Any] = {}
        self._sizes: dict[str, Any] = {}  # symbols
        self._shared = {
            x.node
            for name in partition.kernels
            for k, x in enumerate(self._graph.operands(name))
            if self._is_needed(name, k)
        } & set(self._graph.constants)

    def main(self) -> str:
        """Emits the function that a call runs, and returns it as text."""
        from tvm import relax

        builder = self._builder
        parameters = [
            relax.Var(f"input_{k}", self._type(value))
            for k, value in enumerate(self._values.inputs)
        ]
        for name, parameter in zip(self._graph.inputs, parameters, strict=True):
            self._made[Edge(name, 0)] = parameter
        kept = self._open()
        with builder.function(runtime.MAIN, parameters, pure=False):
            if kept:
                self._take(
                    builder.emit(relax.Call(builder.get().get_global_var(runtime.OPEN), [])), kept
                )
            for stage in stages.stages(self._graph):
                if stage.calls:
                    self._call(stage.calls)
                for name in stage.regions:
                    self._kernel(name)
            outputs = relax.Tuple([self._variable(of) for of in self._graph.outputs])
            builder.emit_func_output(outputs)
        return str(builder.get().script(show_meta=False))

    def module(self, stored: bytes) -> Any:
        """The IRModule; `stored` is what the module says of itself."""
        builder = self._builder
        with builder.function(runtime.DESCRIBE, []):
            builder.emit_func_output(_bytes(stored))
        return builder.finalize().with_attr("external_mods", _libraries(self._kernels()))

    def _kernels(self) -> list[Kernel]:
        found = {one.kernel.name: one.kernel for one in self._partition.kernels.values()}
        return list(found.values())

    def _open(self) -> list[Edge]:
        """Emits the function that returns what the module keeps, and tells what that is."""
        from tvm import relax

        graph = self._graph
        taken = {of for of in graph.outputs if of.node in graph.kept}
        for name in graph.nodes:
            taken |= {of for of in graph.operands(name) if of.node in graph.kept}
        with self._builder.function(runtime.OPEN, [], pure=False):
            if not taken:
                self._builder.emit_func_output(relax.Tuple([]))
                return []
            result, outputs = self._called(runtime.CALL_ONCE, list(graph.kept), taken)
            self._builder.emit_func_output(result)
            return outputs

    def _call(self, inside: Sequence[str]) -> None:
        """Emits a call of TensorFlow."""
        graph, within = self._graph, set(inside)
        taken = {of for of in graph.outputs if of.node in within}
        for name in graph.nodes:
            if name not in within:
                taken |= {of for of in graph.operands(name) if of.node in within}
        self._take(*self._called(runtime.CALL, inside, taken))

    def _called(
        self, function: str, inside: Sequence[str], taken: set[Edge]
    ) -> tuple[Any, list[Edge]]:
        """Emits a call of nodes, and returns the tuple of its results, and which these are."""
        from tvm import ir, relax

        made = subgraphs.subgraph(self._graph, self._values, inside, taken, self._shared)
        returned = ir.TupleType([self._returned(self._values.of(of)) for of in made.outputs])
        arguments = [ir.StringImm(made.digest), _bytes(made.content)]
        arguments += [self._variable(of) for of in made.inputs]
        called = ir.Call(relax.ExternFunc(function), arguments, ty_args=[returned])
        return self._builder.emit(called), made.outputs

    def _take(self, result: Any, outputs: Sequence[Edge]) -> None:
        """Names the items of a tuple."""
        from tvm import relax

        for k, of in enumerate(outputs):
            value = self._values.of(of)
            item = self._builder.emit(relax.TupleGetItem(result, k))
            if is_shared(value.dtype) and value.dims is not None:
                item = self._builder.match_cast(item, self._type(value))
            self._made[of] = item

    def _kernel(self, name: str) -> None:
        """Emits a call of a region's kernel, and the memory for what it computes."""
        from tvm import ir, relax

        region = self._partition.kernels[name]
        kernel, function = region.kernel, self._graph.region(name)
        for text, least in zip(region.symbols.values(), kernel.minimums, strict=True):
            if least > 0:
                self._require(text, least, function)
        arguments = self._arguments(name)
        outputs = []
        for k, value in enumerate(region.outputs):
            outputs.append(self._memory(value))
            self._made[Edge(name, k)] = outputs[-1]
        symbol, graph = kernel.guarded or kernel.name, [ir.StringImm(""), _bytes(b"\0")]
        if kernel.may_refuse:
            made = subgraphs.of_region(self._graph, self._values, name)
            graph = [ir.StringImm(made.digest), _bytes(made.content)]
        told = [
            relax.ExternFunc(symbol),
            ir.StringImm(symbol),
            relax.prim_value(int(kernel.barriers)),
            *graph,
            relax.prim_value(len(arguments)),
            relax.prim_value(len(outputs)),
        ]
        taken = [*arguments, *outputs, *map(_constant, region.packed)]
        called = relax.ExternFunc(runtime.KERNEL)
        self._builder.emit(ir.Call(called, [*told, *taken], ty_args=[ir.TupleType([])]))

    def _arguments(self, name: str) -> list[Any]:
        """A region's operands; a constant that nobody reads is passed as its shape and dtype."""
        arguments: list[Any] = []
        for k, of in enumerate(self._graph.operands(name)):
            if of.node not in self._graph.constants or self._is_needed(name, k):
                arguments.append(self._variable(of))
            else:
                arguments += _told(self._graph.constants[of.node].attr["value"].tensor)
        return arguments

    def _is_needed(self, name: str, operand: int) -> bool:
        """Whether a region's kernel, or TensorFlow in its place, may read an operand's elements."""
        kernel = self._partition.kernels[name].kernel
        return kernel.may_refuse or kernel.reads(operand)

    def _memory(self, value: Value) -> Any:
        """Emits memory of its own for a tensor, which is let go when nobody has it any more.

        What TensorFlow returns may be in the memory of what it was given, a reshaped tensor for
        one: so the memory is none that TVM plans, and would give to others after the call.
        """
        from tvm import ir, relax

        told = [relax.ShapeExpr(self._shape(value.dims or ())), _dtype(value.dtype)]
        called = relax.ExternFunc(runtime.MEMORY)
        return self._builder.emit(ir.Call(called, told, ty_args=[self._type(value)]))

    def _require(self, text: str, least: int, function: str) -> None:
        """Emits the check of a size that a kernel relies on."""
        from tvm import ir, relax

        size = relax.prim_value(self._size(text))
        told = [size, relax.prim_value(least), ir.StringImm(function[-8:])]
        called = relax.ExternFunc(runtime.REQUIRE)
        self._builder.emit(ir.Call(called, told, ty_args=[ir.TupleType([])]))

    def _variable(self, of: Edge) -> Any:
        """A value: a variable, or a constant."""
        if of in self._made:
            return self._made[of]
        if of.node not in self._constants:
            self._constants[of.node] = _constant(value_of(self._graph.constants[of.node]))
        return self._constants[of.node]

    def _size(self, text: str) -> Any:
        """A dim in postfix as an expression of the module."""
        from tvm import tirx

        for token in text.split():
            if token.isidentifier():
                self._sizes.setdefault(token, tirx.Var(token, "int64"))
        return shapes.dim(text, self._sizes)

    def _shape(self, dims: Dims) -> list[Any]:
        return [self._size(str(dim)) for dim in dims]

    def _type(self, value: Value) -> Any:
        """The type of a value whose dims are known, as expressions."""
        from tvm import relax

        if value.dims is None or not is_shared(value.dtype):
            return self._returned(value)
        return relax.TensorType(self._shape(value.dims), value.dtype.name)

    @staticmethod
    def _returned(value: Value) -> Any:
        """The type of a value that TensorFlow returns."""
        from tvm import relax

        if not is_shared(value.dtype):
            return relax.ObjectType()
        rank = -1 if value.dims is None else len(value.dims)
        return relax.TensorType(dtype=value.dtype.name, ndim=rank)


def _told(tensor: Any) -> list[Any]:
    """The shape and the dtype of a constant."""
    from tvm import relax

    sizes = [int(dim.size) for dim in tensor.tensor_shape.dim]
    return [relax.ShapeExpr(sizes), _dtype(tf.as_dtype(tensor.dtype))]


def _dtype(dtype: tf.DType) -> Any:
    from tvm import DataType, ir, relax

    return ir.GenericConst(DataType(dtype.name), relax.AnyType())


def _constant(array: Any) -> Any:
    from tvm import relax

    return relax.const(array, str(array.dtype))


def _bytes(content: bytes) -> Any:
    return _constant(np.frombuffer(content, np.uint8))


def _libraries(kernels: Sequence[Kernel]) -> list[Any]:
    """The machine code of kernels, as TVM links it into the module."""
    import tvm

    found = []
    with tempfile.TemporaryDirectory(prefix="composite-") as folder:
        for kernel in kernels:
            symbols = [name for name in (kernel.name, kernel.guarded) if name]
            for name, data in kernel.objects.items():
                path = Path(folder) / name
                path.write_bytes(data)
                found.append(tvm.runtime.load_static_library(str(path), symbols))
    return found
