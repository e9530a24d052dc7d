"""`composite.hybrid.call_tf`: what a module's TVM calls for the parts that TensorFlow runs.

Of modules that a program opens by TVM's own means: HybridModule has the runtime's
(composite/runtime/hybrid/calls.h).

A call is passed the digest and the bytes of a graph, and its inputs; it returns the outputs. The
function of a graph is made at its first call, and kept.
"""

from __future__ import annotations

import functools
import tempfile
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef

from composite.hybrid import assets
from composite.hybrid.transfer import to_tensorflow, to_tvm
from composite.ops import call, function_op
from composite.ops.functions import nodes, rename_in_graph

CALL = "composite.hybrid.call_tf"
KERNEL = "composite.hybrid.call_kernel"
CALL_ONCE = "composite.hybrid.call_tf_once"
MEMORY = "composite.hybrid.memory"
REQUIRE = "composite.hybrid.require"
SIGNATURE = "call"  # of the MetaGraphDefs
MAIN, OPEN, DESCRIBE = "main", "open", "describe"  # functions of a module

_FUNCTIONS: dict[str, Any] = {}
_MAKING = threading.Lock()
_KEPT: dict[str, list[Any]] = {}  # what calls that are made once have returned
_MAKING_KEPT = threading.Lock()


@functools.cache
def register() -> None:
    """Makes the functions that modules call known to TVM, `composite.hybrid.call_tf` for one.

    A program needs it that loads a module by TVM's own means.
    """
    import tvm_ffi

    tvm_ffi.register_global_func(CALL, _call_tf, override=True)
    tvm_ffi.register_global_func(CALL_ONCE, _call_once, override=True)
    tvm_ffi.register_global_func(KERNEL, _call_kernel, override=True)
    tvm_ffi.register_global_func(MEMORY, _memory, override=True)
    tvm_ffi.register_global_func(REQUIRE, _require, override=True)


def _call_kernel(
    kernel: Any,
    _name: Any,
    _barriers: int,
    digest: Any,
    content: Any,
    inputs: int,
    outputs: int,
    *arguments: Any,
) -> None:
    try:
        kernel(*_tensors(arguments))
    except IndexError:
        if not digest:
            raise
        made = _call_tf(digest, content, *arguments[:inputs])
        for room, value in zip(arguments[inputs : inputs + outputs], made, strict=True):
            np.copyto(np.from_dlpack(room), np.from_dlpack(value))


def _tensors(arguments: Sequence[Any]) -> list[Any]:
    """The arguments of a kernel: what it does not read is passed as a shape and a dtype."""
    import tvm_ffi

    values = iter(arguments)
    return [_memory(x, next(values)) if isinstance(x, tvm_ffi.Shape) else x for x in values]


def _call_tf(digest: Any, content: Any, *inputs: Any) -> list[Any]:
    # TensorFlow writes into an input that nobody else holds: the list does.
    given = [to_tensorflow(x) for x in inputs]
    with call.eager_mode():
        return [to_tvm(y) for y in _function(str(digest), content)(*given)]


def _call_once(digest: Any, content: Any, *inputs: Any) -> list[Any]:
    with _MAKING_KEPT:
        if str(digest) not in _KEPT:
            _KEPT[str(digest)] = _called_once(content, inputs)
        return _KEPT[str(digest)]


def _called_once(content: Any, inputs: Sequence[Any]) -> list[Any]:
    graph = MetaGraphDef.FromString(content.numpy().tobytes())
    assets.unshare(graph.graph_def)
    with tempfile.TemporaryDirectory(prefix="composite-") as folder:
        assets.write(graph.graph_def, Path(folder))
        function = _made(uuid.uuid4().hex, graph.SerializeToString())
        with call.eager_mode():
            return [to_tvm(y) for y in function(*map(to_tensorflow, inputs))]


def _memory(shape: Any, dtype: Any) -> Any:
    import tvm

    return tvm.runtime.empty(tuple(shape), str(dtype))


def _require(size: int, least: int, region: Any) -> None:
    if size < least:
        raise ValueError(
            f"a dim of the call is {size}, and the kernel of region {region} takes {least} or more:"
            f' call the model itself for such inputs, or compile it with deny=["region:{region}"]'
        )


def _function(digest: str, content: Any) -> Any:
    with _MAKING:
        if digest not in _FUNCTIONS:
            _FUNCTIONS[digest] = _made(digest, content.numpy().tobytes())
        return _FUNCTIONS[digest]


def _made(digest: str, content: bytes) -> Any:
    """The function of a graph. ValueError if it is none, or has ops that nobody has defined."""
    try:
        graph = MetaGraphDef.FromString(content)
        signature = graph.signature_def[SIGNATURE]
    except DecodeError as error:
        raise ValueError(f"a part of the module is no graph of TensorFlow: {error}") from error
    # Another graph of the process may have functions of these names, and other ones.
    names = [function.signature.name for function in graph.graph_def.library.function]
    own = {n: n if function_op.is_canonical(n) else f"{n}_{digest}" for n in names}
    rename_in_graph(graph.graph_def, own)
    arguments = [signature.inputs[str(k)] for k in range(len(signature.inputs))]
    results = [signature.outputs[str(k)].name for k in range(len(signature.outputs))]
    specs = [tf.TensorSpec(tf.TensorShape(x.tensor_shape), tf.as_dtype(x.dtype)) for x in arguments]

    @tf.function(input_signature=specs, autograph=False)
    def hybrid_part(*given: Any) -> list[Any]:
        feeds = {x.name: value for x, value in zip(arguments, given, strict=True)}
        found: list[Any] = tf.graph_util.import_graph_def(
            graph.graph_def, input_map=feeds, return_elements=results, name=""
        )
        return found

    unknown = sorted({n.op for n in nodes(graph.graph_def) if not _is_known(n.op, graph)})
    if unknown:
        raise ValueError(
            f"the module runs {', '.join(unknown)} in TensorFlow, and this process has no such op: "
            "import the Python module or composite.load the library that defines it"
        )
    call.add_functions(graph.graph_def.library)
    return hybrid_part.get_concrete_function()


def _is_known(op: str, graph: Any) -> bool:
    own = {function.signature.name for function in graph.graph_def.library.function}
    return op in own or call.op_def(op) is not None
