"""saved_model.pb of a SavedModel folder: read, and written with other graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

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


def require_outside(model: Path, target: Path) -> None:
    """ValueError for a folder to write that lies in the one that is read, and would copy itself."""
    if model.resolve() in target.resolve().parents:
        raise ValueError(f"{target} lies in the model that is read, {model}: name a folder outside")


def composites(saved: Any) -> dict[str, set[str]]:
    """The composites of all its graphs, by name, with the digests of the versions meant."""
    found: dict[str, set[str]] = {}
    for meta_graph in saved.meta_graphs:
        for op, digests in portable.composites(meta_graph.graph_def).items():
            found.setdefault(op, set()).update(digests)
    return found


def change(saved: Any, model: Path, by: Callable[[Any], Any]) -> None:
    """Writes what `read` gave of a folder again, each MetaGraphDef as `by` gives it."""
    for meta_graph in saved.meta_graphs:
        meta_graph.CopyFrom(by(meta_graph))
    write(saved, model)


def write(saved: Any, model: Path) -> None:
    """Writes a changed proto to the folder that its files are in."""
    (model / FILE).write_bytes(saved.SerializeToString(deterministic=True))
    # TensorFlow's hashes of the files that were there; models without it are loaded as well.
    (model / _FINGERPRINT).unlink(missing_ok=True)
