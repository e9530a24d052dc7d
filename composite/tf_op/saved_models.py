"""The libraries that a saved model carries as assets.

A model names the libraries that its nodes call by their SHA-256. Loading the model alone runs no
native code: its nodes then say what they lack. `load` is the consent.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from composite.tf_op.function import OPS, split
from composite.tf_op.module import Module


def load(folder: str | os.PathLike[str]) -> list[Module]:
    """Loads the libraries that the nodes of a saved model call, from its assets.

    That runs native code of the folder: load only what you would run. A file is loaded if it has
    the SHA-256 that a node names; other assets are not touched. Comes before the first call, before
    or after `tf.saved_model.load`.

    Raises:
        FileNotFoundError: the folder has no saved model, or not every library that its nodes call,
            as one that was damaged. Nothing is loaded then.
        tf.errors.OpError: as `Module`.
    """
    root = Path(folder)
    graph = root / "saved_model.pb"
    if not graph.is_file():
        raise FileNotFoundError(f"{root} has no saved model: there is no {graph.name}")
    wanted = dict.fromkeys(_libraries(SavedModel.FromString(graph.read_bytes())))
    files = {_sha256(path): path for path in sorted((root / "assets").glob("*")) if path.is_file()}
    missing = [library for library in wanted if library not in files]
    if missing:
        raise FileNotFoundError(
            f"{root} does not carry the library with SHA-256 {missing[0]}, which its nodes call: "
            "set `model.library = module.asset()` before the model is saved; or the file was "
            "changed since"
        )
    return [Module(files[library], sha256=library) for library in wanted]


def _libraries(model: SavedModel) -> Iterator[str]:
    for meta_graph in model.meta_graphs:
        graph = meta_graph.graph_def
        yield from _named(graph.node)
        for function in graph.library.function:
            yield from _named(function.node_def)


def _named(nodes: Any) -> Iterator[str]:
    for node in nodes:
        if node.op in OPS:
            yield split(node.attr["function"].s)[0]


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
