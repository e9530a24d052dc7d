"""The libraries that a saved model carries as assets.

A model names the libraries that its nodes call by their SHA-256. Loading the model alone runs no
native code: its nodes then say what they lack.

Not for: who consents to native code (composite/saving/model_loading.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from composite.tf_op.function import OPS, split
from composite.tf_op.module import Module, is_loaded

_OPS = b"TvmCall"  # in the names of all of them


def missing(model: Path) -> list[str]:
    """The libraries that the nodes of a saved model call, and that this process has not loaded."""
    content = (model / "saved_model.pb").read_bytes()
    if _OPS not in content:  # a large model is not parsed for nothing
        return []
    wanted = called(SavedModel.FromString(content))
    return [library for library in wanted if not is_loaded(library)]


def called(model: SavedModel) -> dict[str, tuple[str, ...]]:
    """The functions that the nodes of a saved model call, by the library."""
    found: dict[str, dict[str, None]] = {}
    for library, name in _functions(model):
        found.setdefault(library, {})[name] = None
    return {library: tuple(names) for library, names in found.items()}


def inside(root: Path) -> dict[str, Path]:
    """The assets of a saved model, by their SHA-256."""
    return {_sha256(path): path for path in sorted((root / "assets").glob("*")) if path.is_file()}


def load(root: Path, wanted: Collection[str]) -> None:
    """Loads libraries from the assets of a saved model, which runs their code.

    A file is loaded if it has the SHA-256 that is wanted; other assets are not touched.

    Raises:
        FileNotFoundError: not every library is there, as one that was damaged. Nothing is loaded
            then.
        tf.errors.OpError: as `Module`.
    """
    files = inside(root)
    absent = [library for library in wanted if library not in files]
    if absent:
        raise FileNotFoundError(
            f"{root} does not carry the library with SHA-256 {absent[0]}, which its nodes call: "
            "set `model.library = module.asset()` before the model is saved; or the file was "
            "changed since; or load it by composite.tf_op.Module"
        )
    for library in wanted:
        Module(files[library], sha256=library)


def _functions(model: SavedModel) -> Iterator[tuple[str, str]]:
    for meta_graph in model.meta_graphs:
        graph = meta_graph.graph_def
        yield from _named(graph.node)
        for function in graph.library.function:
            yield from _named(function.node_def)


def _named(nodes: Any) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if node.op in OPS:
            yield split(node.attr["function"].s)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
