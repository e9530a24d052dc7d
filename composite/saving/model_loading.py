"""`composite.load_model`: a SavedModel, after what its composites need."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from composite.aot.loading import load
from composite.binding.log import logger
from composite.jit import worker
from composite.ops.registry import OPS
from composite.saving import contents, keras_archive, region_kernels
from composite.tf_op import saved_models


def load_model(
    path: str | os.PathLike[str],
    *,
    native_code: bool = False,
    tags: Any = None,
    options: Any = None,
) -> Any:
    """Loads a SavedModel, and first the libraries that lie inside: of its ops, and TVM's.

    Args:
        path: the folder, as `composite.save` or TensorFlow wrote it, or a file of Keras,
            `model.keras`.
        native_code: whether the machine code of the libraries inside may run in this process:
            only for models whose origin you trust. Not needed where the process has the ops, and
            has loaded the libraries that `composite.tf_op` calls; nor for a model that
            `composite.accelerate` wrote, whose kernels are left alone without.
        tags: as `tf.saved_model.load` takes them. Not for a file of Keras.
        options: as `tf.saved_model.load` takes them. Not for a file of Keras.

    Returns:
        What `tf.saved_model.load` returns, or `tf.keras.models.load_model`.

    Raises:
        FileNotFoundError: if there is no SavedModel, or a TVM library is not inside, or changed.
        ImportError: if ops are missing; the message names where they were defined.
        ValueError: if a library or a kernel inside is not the one that was saved, or `native_code`
            is needed.
    """
    model = Path(path)
    if model.suffix == keras_archive.SUFFIX and not model.is_dir():
        if tags is not None or options is not None:
            raise ValueError(f"{model} is a file of Keras, which has no tags and no options")
        load_keras = (
            tf.keras.models.load_model
        )  # imports Keras: ops that come after are named to it
        folder = keras_archive.extracted(model, native_code=native_code)
        _require(model, folder, native_code=native_code)
        _require_all(model, keras_archive.missing(model))
        return load_keras(model)
    require(model, native_code=native_code)
    return tf.saved_model.load(str(model), tags=tags, options=options)


def require(model: Path, *, native_code: bool = False) -> None:
    """Has this process know what a SavedModel needs; raises as `load_model`."""
    if not tf.io.gfile.exists(str(model / "saved_model.pb")):
        raise FileNotFoundError(f"{model} is no SavedModel: it has no saved_model.pb")
    _require(model, model, native_code=native_code)


def _require(model: Path, folder: Path, *, native_code: bool) -> None:
    """Loads what lies in a folder for a model, which errors name."""
    needs = contents.read(folder)
    missing = _missing(needs)
    called = saved_models.missing(folder) if folder == model else []  # files of Keras have none
    if (missing and needs.libraries) or called:
        if not native_code:
            named = _names(missing) or f"TVM libraries ({', '.join(n[:16] for n in called)})"
            raise ValueError(
                f"{model} needs {named}, which libraries inside it define: they are machine code. "
                "If you trust where the model comes from, load it with native_code=True"
            )
        _load_libraries(folder, needs)
        saved_models.load(folder, called)
        missing = _missing(needs)
    _require_all(model, missing)
    if needs.kernels:
        region_kernels.load(folder, needs.kernels, native_code=native_code)
        if not native_code:
            logger.info("%s has kernels inside, which native_code=True would use", model)
            worker.start_for_regions()  # they are made anew


def _require_all(model: Path, missing: Sequence[contents.Needed]) -> None:
    if missing:
        raise ImportError(
            f"{model} needs {_names(missing)}: import the module, or composite.load the library, "
            "that defines them; or save the model where they are known, with ops='portable'"
        )


def _load_libraries(model: Path, needs: contents.Contents) -> None:
    for name, digest in sorted(needs.libraries.items()):
        folder = model / contents.FOLDER / name
        if not folder.is_dir() or contents.manifest_hash(folder) != digest:
            raise ValueError(
                f"{folder} is not the library that was saved: it was changed or is missing; "
                "save the model again"
            )
        load(folder)


def _missing(needs: contents.Contents) -> list[contents.Needed]:
    return [one for one in needs.ops if not OPS.has_version(one.digest)]


def _names(ops: Sequence[contents.Needed]) -> str:
    return ", ".join(f"{one.op} (of {one.module}, {one.place})" for one in ops)
