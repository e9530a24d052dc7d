"""Files that a module has inside, for resources whose initializers read files.

In its graphs they are constants that are marked, which stand for the paths of the files.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import tensorflow as tf

from composite.binding.records import NodeDef, record
from composite.ops import functions

ASSET = "_composite_asset"  # the mark, whose value is the name of the file


def constant(name: str, file: Path) -> NodeDef:
    """The node that stands for a file's path."""
    node = record("Const", name, value=_text(file.read_bytes()), dtype=tf.string)
    node.attr[ASSET].s = file.name.encode()
    return node


def write(graph_def: Any, folder: Path) -> None:
    """Writes the files of a graph into a folder, and has its constants be their paths."""
    marked = [node for node in graph_def.node if ASSET in node.attr]
    for k, node in enumerate(marked):
        file = folder / f"{k}" / node.attr[ASSET].s.decode()
        file.parent.mkdir()
        file.write_bytes(node.attr["value"].tensor.string_val[0])
        node.attr["value"].tensor.CopyFrom(_text(str(file).encode()))


def unshare(graph_def: Any) -> None:
    """Has a graph share no resource by name with others of the process."""
    own = uuid.uuid4().hex.encode()
    for node in functions.nodes(graph_def):
        if "shared_name" in node.attr:
            node.attr["shared_name"].s += b"_" + own


def _text(content: bytes) -> Any:
    return tf.make_tensor_proto(content, tf.string)
