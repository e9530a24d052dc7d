"""What the tests of the kernel side share: the C API, small programs, kernels written in C.

Kernels are compiled by g++ against the same C ABI that TVM's have, so that a test can make one do
anything: raise, allocate, tell where its inputs lie. Not for kernels of real use.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.framework.op_def_pb2 import OpDef
from tensorflow.core.framework.tensor_shape_pb2 import TensorShapeProto
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import op_def_library

from composite.binding import native

LIBRARY = native.library_path()

# A kernel library names the runtime as needed.
LINK = [f"-L{LIBRARY.parent}", "-lcomposite_runtime", "-lm", "-Wl,--allow-shlib-undefined"]


class _Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Kernel(ctypes.Structure):
    """composite_kernel of kernel_c_api.h."""

    _fields_ = [
        ("record", ctypes.c_char_p),
        ("size", ctypes.c_size_t),
        ("function", ctypes.c_void_p),
        ("packers", ctypes.c_void_p),
    ]


library = ctypes.CDLL(str(LIBRARY))


def request(name: str, message: Any = b"") -> bytes:
    """Calls a function of the C API; raises the tf.errors class of its status."""
    data = message if isinstance(message, bytes) else message.SerializeToString()
    reply = _Buffer()
    code = getattr(library, name)(data, ctypes.c_size_t(len(data)), ctypes.byref(reply))
    content = ctypes.string_at(reply.data, reply.size) if reply.data else b""
    library.composite_free(ctypes.byref(reply))
    if code:
        raise native.error(code, content.decode())
    return content


# bool before int: it is one.
_KINDS = ((bool, "b"), (int, "i"), (float, "f"))


def attr(value: Any) -> AttrValue:
    """An AttrValue; the tuples of a list are shapes."""
    if isinstance(value, AttrValue):
        return value
    result = AttrValue()
    if isinstance(value, list):
        result.list.SetInParent()
        for element in value:
            _append(result.list, element)
    elif isinstance(value, str):
        result.s = value.encode()
    elif isinstance(value, tf.DType):
        result.type = value.as_datatype_enum
    else:
        setattr(result, next(kind for cls, kind in _KINDS if isinstance(value, cls)), value)
    return result


def _append(values: Any, element: str | float | tuple[int, ...] | tf.DType) -> None:
    if isinstance(element, str):
        values.s.append(element.encode())
    elif isinstance(element, tf.DType):
        values.type.append(element.as_datatype_enum)
    elif isinstance(element, bool):
        values.b.append(element)
    elif isinstance(element, float):
        values.f.append(element)
    elif isinstance(element, int):
        values.i.append(element)
    else:
        values.shape.add().dim.extend(TensorShapeProto.Dim(size=dim) for dim in element)


def node(node_name: str = "", node_op: str = "", /, **attrs: Any) -> NodeDef:
    """A record: positional name and op, the rest are attributes."""
    result = NodeDef(name=node_name, op=node_op)
    for key, value in attrs.items():
        result.attr[key].CopyFrom(attr(value))
    return result


def reply(name: str, message: Any = b"") -> dict[str, Any]:
    """A NodeDef reply as a dict of its attributes."""
    answer = NodeDef.FromString(request(name, message))
    values = {}
    for key, value in answer.attr.items():
        kind = value.WhichOneof("value")
        plain = getattr(value, kind) if kind else None
        values[key] = plain.decode() if isinstance(plain, bytes) else plain
    return values


def stats() -> dict[str, Any]:
    return reply("composite_stats", node())


# Programs.


def call_node(name: str, op: str, inputs: Sequence[str], keywords: Sequence[str]) -> NodeDef:
    result = node(name, "tfr.call", op=op, keywords=list(keywords), _loc="ops.py:2:5")
    result.input.extend(inputs)
    return result


def program(
    op: str,
    declaration: Mapping[str, Sequence[str]],
    nodes: Sequence[NodeDef],
    returns: Mapping[str, str],
    place: str = "ops.py:1",
) -> FunctionDefLibrary:
    """A serialized program as the compiler would write it; the digest is over its own bytes."""
    parts = {key: list(declaration.get(key, ())) for key in ("inputs", "attrs", "outputs")}
    op_def = OpDef.FromString(request("composite_parse_declaration", node("", op, **parts)))
    result = FunctionDefLibrary()
    function = result.function.add()
    function.signature.CopyFrom(op_def)
    function.node_def.extend(nodes)
    for key, value in returns.items():
        function.ret[key] = value
    digest = hashlib.sha256(result.SerializeToString(deterministic=True)).hexdigest()[:32]
    for key, value in {"_digest": digest, "_place": place, "_module": "ops"}.items():
        function.attr[key].CopyFrom(attr(value))
    return result


def digest_of(library_def: FunctionDefLibrary) -> str:
    return library_def.function[0].attr["_digest"].s.decode()


def dense(op: str, activation: str = "Relu") -> FunctionDefLibrary:
    """activation(x @ w + b) for float32."""
    return program(
        op,
        {"inputs": ["x: float", "w: float", "b: float"], "outputs": ["y: float"]},
        [
            call_node("0", "MatMul", ["x", "w"], ["a", "b"]),
            call_node("1", "BiasAdd", ["0", "b"], ["value", "bias"]),
            call_node("2", activation, ["1"], ["features" if activation == "Relu" else "x"]),
        ],
        {"y": "2"},
    )


def twice(op: str, add: str = "AddV2") -> FunctionDefLibrary:
    """Doubles x, of any dtype, by one op."""
    return program(
        op,
        {"inputs": ["x: T"], "attrs": ["T: type"], "outputs": ["y: T"]},
        [call_node("0", add, ["x", "x"], ["x", "y"])],
        {"y": "0"},
    )


def register(library_def: FunctionDefLibrary) -> str:
    """Registers a program; returns its digest."""
    request("composite_register", library_def)
    return digest_of(library_def)


def call(op: str, inputs: Mapping[str, Any], **attrs: Any) -> Any:
    """Calls an op of one output, eagerly or into the current graph."""
    if tf.executing_eagerly():
        tensors = [tf.convert_to_tensor(value) for value in inputs.values()]
        flat: list[Any] = []
        for key, value in attrs.items():
            flat += [key, value.as_datatype_enum if isinstance(value, tf.DType) else value]
        return execute.execute(op.encode(), 1, tensors, tuple(flat), context.context())[0]
    stamps = {key: attrs.pop(key) for key in list(attrs) if key.startswith("_")}
    result = op_def_library.apply_op(op, **inputs, **attrs)
    for key, value in stamps.items():
        result.op._set_attr(key, attr(value))
    return result


# Kernels.

PRELUDE = r"""
#include <math.h>
#include <stdint.h>
#include <string.h>
typedef struct { void* data; int32_t device[2]; int32_t ndim; uint8_t code, bits; uint16_t lanes;
                 int64_t* shape; int64_t* strides; uint64_t byte_offset; } Tensor;
typedef struct { int32_t type_index; uint32_t padding; Tensor* tensor; } Any;
typedef struct { void* sync; int32_t num_task; } Env;
void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts, int32_t count);
static int raise_error(const char* kind, const char* message) {
  const char* parts[] = {message};
  TVMFFIErrorSetRaisedFromCStrParts(kind, parts, 1);
  return -1;
}
#define KERNEL(name) \
  int __tvm_ffi_##name(void* self, const Any* args, int32_t count, Any* result)
#define ARG(i) args[i].tensor
#define FLOATS(i) ((float*)args[i].tensor->data)
"""

# relu(x @ w + b) by three loops; the rows are shared among TF's threads when PARALLEL is defined.
DENSE_C = r"""
typedef struct { const Any* args; } Work;
static int rows(int task, Env* env, void* data) {
  const Any* args = ((Work*)data)->args;
  int64_t m = ARG(0)->shape[0], k = ARG(0)->shape[1], n = ARG(1)->shape[1];
  for (int64_t i = task; i < m; i += env->num_task)
    for (int64_t j = 0; j < n; ++j) {
      float sum = FLOATS(2)[j];
      for (int64_t l = 0; l < k; ++l) sum += FLOATS(0)[i * k + l] * FLOATS(1)[l * n + j];
      FLOATS(3)[i * n + j] = sum > 0 ? sum : 0;
    }
  return 0;
}
int (*__TVMBackendParallelLaunch)(int (*)(int, Env*, void*), void*, int);
KERNEL(NAME) {
  Work work = {args};
  Env alone = {0, 1};
  if (count != 4) return raise_error("TypeError", "expected 4 tensors");
#ifdef PARALLEL
  return __TVMBackendParallelLaunch(rows, &work, 0);
#else
  return rows(0, &alone, &work);
#endif
}
"""


def build(folder: Path, name: str, source: str, *flags: str) -> Path:
    """Compiles a C kernel to a library of its own, linked as just-in-time kernels are."""
    code, path = folder / f"{name}.c", folder / f"{name}.so"
    code.write_text(PRELUDE + source.replace("NAME", name))
    subprocess.run(
        ["gcc", "-O1", "-shared", "-fPIC", *flags, str(code), "-o", str(path), *LINK],
        check=True,
    )
    path.chmod(0o600)
    return path


def record(  # noqa: PLR0917 - the columns of a record, in the order in which one reads them
    name: str,
    op: str,
    digest: str,
    in_shapes: Sequence[Sequence[int]],
    out_shapes: Sequence[str],
    path: Path | None = None,
    **attrs: Any,
) -> NodeDef:
    """A kernel record; `attrs` adds or replaces attributes."""
    values: dict[str, Any] = {
        "_composite_program": digest,
        "_in_shapes": [tuple(shape) for shape in in_shapes],
        "_out_shapes": list(out_shapes),
        "_verdict": "kernel",
        "_device": "CPU",
        "_isa": "x86-64",
    }
    if path is not None:
        values["_library"] = str(path)
        values["_library_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    return node(name, op, **{**values, **attrs})


def install_dense(
    folder: Path, op: str, digest: str, *flags: str, name: str = "", **attrs: Any
) -> None:
    """A C kernel that covers every shape of `dense`."""
    name = name or f"k_{op.lower()}"
    path = build(folder, name, DENSE_C, *flags)
    shapes = [(-1, -2), (-2, -3), (-3,)]
    request("composite_install", record(name, op, digest, shapes, ["s0,s2"], path, **attrs))


def dense_inputs(m: int, k: int = 8, n: int = 5, seed: int = 0) -> dict[str, Any]:
    """Tensors in TensorFlow's own memory. NumPy's may be shared and is not packed."""
    rng = np.random.default_rng(seed)
    shapes = {"x": (m, k), "w": (k, n), "b": (n,)}
    return {name: tf.cast(rng.standard_normal(shape), tf.float32) for name, shape in shapes.items()}


def dense_reference(x: Any, w: Any, b: Any) -> Any:
    return tf.nn.relu(tf.matmul(x, w) + b)


def explain(op: str, inputs: Mapping[str, Any], **attrs: Any) -> dict[str, Any]:
    shapes = [tuple(tensor.shape) for tensor in inputs.values()]
    return reply("composite_explain", node("", op, _in_shapes=shapes, **attrs))


@contextlib.contextmanager
def options(backend: str = "", numerics: str = "", thread: bool = True) -> Iterator[None]:
    previous = reply(
        "composite_set_options", node("", "", backend=backend, numerics=numerics, thread=thread)
    )
    try:
        yield
    finally:
        request("composite_set_options", node("", "", thread=thread, **previous))


class Worker:
    """A just-in-time worker: `answer(request)` returns the status and reason to finish with.

    And, if it likes, the inputs whose values are sizes.
    """

    def __init__(self, answer: Any) -> None:
        self.requests: list[NodeDef] = []
        self._answer = answer
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Worker:
        request("composite_worker", node("", "", running=True))
        self._running = True
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._running = False
        request("composite_worker", node("", "", running=False))
        self._thread.join()

    def _work(self) -> None:
        while self._running:
            asked = NodeDef.FromString(
                request("composite_next_request", node("", "", timeout_ms=200))
            )
            if not asked.name:
                continue
            self.requests.append(asked)
            status, reason, *sizes = self._answer(asked)
            done = node(asked.name, "", status=status, reason=reason, sizes=list(*sizes))
            request("composite_finish", done)

    def wait(self) -> None:
        """Returns when nothing is pending."""
        while reply("composite_pending")["pending"]:
            threading.Event().wait(0.002)


def shapes_of(asked: NodeDef) -> list[tuple[int, ...]]:
    shapes = asked.attr["_in_shapes"].list.shape
    return [tuple(dim.size for dim in shape.dim) for shape in shapes]


def graph_function(op: str) -> Any:
    """A dense op in a function of its three inputs."""
    return tf.function(lambda x, w, b: call(op, {"x": x, "w": w, "b": b}))
