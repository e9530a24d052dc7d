"""`composite.hybrid.call_tf`: what a module's TVM calls for the parts that TensorFlow runs.

A call is passed the digest and the bytes of a graph, and its inputs; it returns the outputs. The
function of a graph is made at its first call, and kept.
"""

from __future__ import annotations

import functools
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef

from composite.hybrid import assets
from composite.hybrid.transfer import to_tensorflow, to_tvm
from composite.ops import call, function_op
from composite.ops.functions import nodes, rename_in_graph

CALL = "composite.hybrid.call_tf"
CALL_ONCE = "composite.hybrid.call_tf_once"
REQUIRE = "composite.hybrid.require"
SIGNATURE = "call"  # of the MetaGraphDefs
MAIN, OPEN, DESCRIBE = "main", "open", "describe"  # functions of a module

_FUNCTIONS: dict[str, Any] = {}
_MAKING = threading.Lock()
_LAST = threading.local()  # the error of the last call that failed, of which TVM passes on the text


class Kept:
    """What calls that are made once have returned, for an opened module."""

    def __init__(self) -> None:
        """Nothing has been called."""
        self._results: dict[str, list[Any]] = {}
        self._making = threading.Lock()

    def of(self, digest: str, make: Callable[[], list[Any]]) -> list[Any]:
        """What the call of this digest returned."""
        with self._making:
            if digest not in self._results:
                self._results[digest] = make()
            return self._results[digest]

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Has calls of this thread's modules keep their results here."""
        before = _kept()
        _CURRENT.kept = self
        try:
            yield
        finally:
            _CURRENT.kept = before


_CURRENT = threading.local()
_OF_PROCESS = Kept()  # of modules that were opened by TVM's own means


@functools.cache
def register() -> None:
    """Makes the functions that modules call known to TVM, `composite.hybrid.call_tf` for one.

    `composite.hybrid.compile` and `load` do it; a program needs it that loads a module by TVM's own
    means.
    """
    import tvm_ffi

    tvm_ffi.register_global_func(CALL, _call_tf, override=True)
    tvm_ffi.register_global_func(CALL_ONCE, _call_once, override=True)
    tvm_ffi.register_global_func(REQUIRE, _require, override=True)


def functions() -> int:
    """How many functions of TensorFlow there are for the graphs of modules."""
    return len(_FUNCTIONS)


@contextmanager
def errors_of_tensorflow() -> Iterator[None]:
    """Raises what a call of TensorFlow in the block raised, as it was."""
    _LAST.error = None
    try:
        yield
    except RuntimeError:
        if _LAST.error is None:
            raise
        raise _LAST.error from None
    finally:
        _LAST.error = None


@contextmanager
def _noting() -> Iterator[None]:
    """Notes why the block fails."""
    try:
        yield
    except (tf.errors.OpError, ValueError) as error:
        _LAST.error = error
        raise


def _call_tf(digest: Any, content: Any, *inputs: Any) -> list[Any]:
    # TensorFlow writes into an input that nobody else holds: the list does.
    given = [to_tensorflow(x) for x in inputs]
    with _noting(), call.eager_mode():
        return [to_tvm(y) for y in _function(str(digest), content)(*given)]


def _call_once(digest: Any, content: Any, *inputs: Any) -> list[Any]:
    def make() -> list[Any]:
        graph = MetaGraphDef.FromString(content.numpy().tobytes())
        assets.unshare(graph.graph_def)
        with tempfile.TemporaryDirectory(prefix="composite-") as folder, _noting():
            assets.write(graph.graph_def, Path(folder))
            function = _made(uuid.uuid4().hex, graph.SerializeToString())
            with call.eager_mode():
                return [to_tvm(y) for y in function(*map(to_tensorflow, inputs))]

    return _kept().of(str(digest), make)


def _kept() -> Kept:
    return getattr(_CURRENT, "kept", _OF_PROCESS)


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
