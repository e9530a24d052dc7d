"""`composite.to_tflite`: TFLite models with composites as custom ops, and the kernels of these.

A custom op has the op's name; its options are the attributes, as JSON, by which the delegate finds
a kernel (composite/runtime/standalone/tflite_delegate.cc). The kernels are those of built
libraries, the same that TensorFlow runs.
Not for: models of TFLite's own ops alone, which its converter makes of portable models.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import tensorflow as tf
from flatbuffers import flexbuffers

# Of TensorFlow 2.21: its API has nothing that edits a TFLite model.
from tensorflow.lite.python.schema_py_generated import TensorType
from tensorflow.lite.tools import flatbuffer_utils

from composite.compiler.emit.standalone import canonical
from composite.ops import function_op
from composite.ops.op import CompositeOp
from composite.ops.registry import OPS
from composite.saving import graph_protos, portable, saved_model

_RUNTIME = Path(__file__).resolve().parents[1] / "runtime" / "libcomposite_standalone.so"
_DTYPES = {number: name.lower() for name, number in vars(TensorType).items() if name.isupper()}


def to_tflite(
    model: str | os.PathLike[str],
    ops: Collection[CompositeOp] | None = None,
    configure: Callable[[Any], None] | None = None,
) -> bytes:
    """A SavedModel as a TFLite model in which composites are custom ops.

    An interpreter runs it with `tflite_delegate`, by the kernels of a built library: nothing of
    TensorFlow is in their place where no kernel covers a call.

    Args:
        model: the folder, with composites as nodes.
        ops: those that become custom ops; the rest are TFLite's own. By default all.
        configure: is given the tf.lite.TFLiteConverter, to set more: `optimizations`, for one.

    Raises:
        FileNotFoundError: if there is no SavedModel.
        ValueError: if a composite has to be expanded and cannot be, or has attributes that the
            converter leaves out: tensors, shapes, functions.
    """
    folder = Path(model)
    saved = saved_model.read(folder)
    named = saved_model.composites(saved).keys() - {function_op.NAME}
    kept = named if ops is None else named & {op.op_name for op in ops}
    for meta_graph in saved.meta_graphs:
        graph_def = portable.portable(meta_graph.graph_def, kept)
        meta_graph.graph_def.CopyFrom(graph_def)
        graph_protos.name_ops(meta_graph)
    with tempfile.TemporaryDirectory() as changed:
        for entry in folder.iterdir():  # variables and assets
            Path(changed, entry.name).symlink_to(entry.resolve())
        Path(changed, saved_model.FILE).unlink()
        saved_model.write(saved, Path(changed))
        converter = tf.lite.TFLiteConverter.from_saved_model(changed)
        converter.allow_custom_ops = True
        if configure is not None:
            configure(converter)
        return _with_attributes(converter.convert())


def tflite_delegate(library: str | os.PathLike[str], load: Callable[..., Any] | None = None) -> Any:
    """What runs the custom ops of `to_tflite` in an interpreter, by the kernels of a library.

    Args:
        library: the folder that `composite.build` wrote. Its code runs: load what you would run.
        load: `load_delegate` of the interpreter's package; by default that of tf.lite.

    Returns:
        A delegate, for `experimental_delegates=[...]` of the interpreter.

    Raises:
        ValueError: if the folder holds no library, or one that was changed.
    """
    load = load or tf.lite.experimental.load_delegate
    return load(str(_RUNTIME), {"library": os.fspath(library)})


def _with_attributes(model: bytes) -> bytes:
    """The same model, the options of its composites in the form that the delegate reads."""
    content = flatbuffer_utils.convert_bytearray_to_object(bytearray(model))
    for subgraph in content.subgraphs:
        for operator in subgraph.operators:
            name = content.operatorCodes[operator.opcodeIndex].customCode
            if name is not None and (op := OPS.current(name.decode())) is not None:
                values = flexbuffers.Loads(bytes(operator.customOptions))
                attributes = {attr.name: _value(op, attr, values) for attr in op.schema.attrs}
                operator.customOptions = list(canonical(attributes).encode())
    return bytes(flatbuffer_utils.convert_object_to_bytearray(content))


def _value(op: CompositeOp, attr: Any, values: dict[str, Any]) -> Any:
    """An attribute as JSON has it, of those that the converter wrote."""
    if attr.name not in values:
        raise ValueError(
            f"{op.op_name} has the attribute {attr.name!r} ({attr.type}), which TFLite's converter "
            "leaves out of a custom op: convert without it, by ops=[...]"
        )
    value = values[attr.name]
    return _DTYPES[value] if attr.type == "type" else value
