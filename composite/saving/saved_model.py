"""saved_model.pb of a SavedModel folder: read, and written with its composites made portable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensorflow.core.framework.op_def_pb2 import OpDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from composite.ops import call
from composite.saving import portable

FILE = "saved_model.pb"
_FINGERPRINT = "fingerprint.pb"


def read(model: Path) -> Any:
    """The SavedModel proto of a folder.

    FileNotFoundError where there is none, ValueError for a damaged one.
    """
    path = model / FILE
    if not path.is_file():
        raise FileNotFoundError(f"{model} is no SavedModel: it has no {FILE}")
    try:
        return SavedModel.FromString(path.read_bytes())
    except Exception as error:  # protobuf's DecodeError has another home in each of its versions
        raise ValueError(f"{path} is damaged ({error}): save the model again") from error


def composites(saved: Any) -> dict[str, set[str]]:
    """The composites of all its graphs, by name, with the digests of the versions meant."""
    found: dict[str, set[str]] = {}
    for meta_graph in saved.meta_graphs:
        for op, digests in portable.composites(meta_graph.graph_def).items():
            found.setdefault(op, set()).update(digests)
    return found


def make_portable(saved: Any, model: Path) -> None:
    """Writes what `read` gave of a folder again, with calls of stock ops for its composites.

    ValueError names the node that cannot be expanded.
    """
    for meta_graph in saved.meta_graphs:
        graph_def = portable.portable(meta_graph.graph_def)
        meta_graph.graph_def.CopyFrom(graph_def)
        name_ops(meta_graph)
    write(saved, model)


def write(saved: Any, model: Path) -> None:
    """Writes a changed proto to the folder that its files are in."""
    (model / FILE).write_bytes(saved.SerializeToString(deterministic=True))
    # TensorFlow's hashes of the files that were there; models without it are loaded as well.
    (model / _FINGERPRINT).unlink(missing_ok=True)


def name_ops(meta_graph: Any) -> None:
    """Has the list of the ops that a loader needs follow the graph."""
    graph_def = meta_graph.graph_def
    own = {function.signature.name for function in graph_def.library.function}
    nodes = (*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def))
    known = {op.name: op for op in meta_graph.meta_info_def.stripped_op_list.op}
    names = sorted({node.op for node in nodes} - own)
    ops = [known[name] if name in known else _stripped(call.op_def(name)) for name in names]
    del meta_graph.meta_info_def.stripped_op_list.op[:]
    meta_graph.meta_info_def.stripped_op_list.op.extend(ops)


def _stripped(definition: Any) -> Any:
    """An OpDef without its documentation."""
    result = OpDef()
    result.CopyFrom(definition)
    for described in (result, *result.input_arg, *result.output_arg, *result.attr):
        described.ClearField("description")
    result.ClearField("summary")
    return result
