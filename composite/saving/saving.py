"""`composite.save`: a model with composites, in one of three forms."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import tensorflow as tf

from composite.aot.loading import LoadedOp
from composite.aot.replacing import replaced
from composite.ops import function_op
from composite.ops.registry import OPS
from composite.saving import contents, graph_protos, info, keras_archive, saved_model
from composite.tf_op import saved_models as tvm_libraries

Form = Literal["nodes", "inside", "portable"]


def save(  # noqa: PLR0913 - what `tf.saved_model.save` takes, and the form
    model: Any,
    path: str | os.PathLike[str],
    ops: Form = "nodes",
    *,
    libraries: Sequence[str | os.PathLike[str]] = (),
    signatures: Any = None,
    options: Any = None,
    update: bool = False,
) -> None:
    """Saves a model so that its composites run where the form says.

    Args:
        model: what `tf.saved_model.save` takes, a Keras model (saved as its `export` does), or the
            folder of a SavedModel, whose Python code is not needed.
        path: the folder to write. What is there is replaced when all went well. For a Keras model
            also a file, `model.keras`, as its `save` writes it, with "nodes" or "inside".
        ops: what becomes of composites.
            "nodes": they stay nodes. The process that loads the model needs their ops.
            "inside": they stay nodes, and built libraries of their ops lie in the model, from
            where `composite.load_model` and a C program load them.
            "portable": each is a call of a function of TensorFlow's own ops, so that any
            TensorFlow runs the model, and what converts models sees stock ops. A process that has
            the ops runs them as nodes, with their kernels.
        libraries: for "inside", the folders that `composite.build` wrote. By default those that
            the ops were loaded from.
        signatures: as `tf.saved_model.save` takes them.
        options: tf.saved_model.SaveOptions.
        update: whether composites of a model that was saved with older bodies of their ops take
            those that this process has. By default each keeps its own.

    Raises:
        ValueError: if `path` lies in the folder `model`, this process does not know an op of the
            model, a node cannot be expanded ("portable"; the message names it), no library is known
            for an op ("inside"), a file of Keras is asked to be portable or updated, or today's
            version of an op does not take the place of an older one (`update`; the message names
            the node).
        FileNotFoundError: if `model` is a path at which there is no SavedModel.
    """
    if ops not in get_args(Form):
        raise ValueError(f"ops is {ops!r}, but has to be one of {', '.join(get_args(Form))}")
    if Path(path).suffix == keras_archive.SUFFIX and _is_keras_model(model):
        if update:
            raise ValueError(f"{path} would name the ops, and so mean today's: leave update out")
        _save_keras(model, Path(path), ops, libraries)
        return
    if isinstance(model, str | os.PathLike):
        saved_model.read(Path(model))  # says what is wrong with it
        saved_model.require_outside(Path(model), Path(path))
    with replaced(Path(path)) as folder:
        _write(model, folder, signatures, options)
        _convert(folder, ops, libraries, update=update)


def _convert(
    folder: Path, ops: Form, libraries: Sequence[str | os.PathLike[str]], *, update: bool
) -> None:
    """Gives a SavedModel that was just written the form that is asked for."""
    shutil.rmtree(folder / contents.FOLDER, ignore_errors=True)  # of the model that was read
    saved = saved_model.read(folder)
    if update:
        saved_model.change(saved, folder, graph_protos.updated)
    found = saved_model.composites(saved)
    needed = _needed(found)
    inside = _libraries(needed, libraries) if ops == "inside" else []
    if ops == "portable" and found:
        saved_model.change(saved, folder, graph_protos.to_portable)
        needed = ()
    if needed or tvm_libraries.called(saved):
        info.write(contents.Contents(needed, contents.copied(inside, folder)), folder)


def _save_keras(
    model: Any, path: Path, ops: Form, libraries: Sequence[str | os.PathLike[str]]
) -> None:
    """A Keras model as a file of Keras."""
    if ops == "portable":
        raise ValueError(
            f"{path} would name the ops, as files of Keras do, and has no graph that could be "
            "portable: save to a folder, which gets a SavedModel"
        )
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        folder, file = Path(scratch), Path(scratch, path.name)
        model.save(file)
        needed = _needed(keras_archive.composites(file))
        inside = _libraries(needed, libraries) if ops == "inside" else []
        if needed:
            info.write(contents.Contents(needed, contents.copied(inside, folder)), folder)
            keras_archive.add(folder, file)
        os.replace(file, path)


def note_needs(folder: Path) -> None:
    """Has a SavedModel whose graphs were changed say what it needs; its libraries stay inside."""
    needed = _needed(saved_model.composites(saved_model.read(folder)))
    libraries = contents.read(folder).libraries
    if needed or libraries:
        info.write(contents.Contents(needed, libraries), folder)


def _write(model: Any, folder: Path, signatures: Any, options: Any) -> None:
    """The model as a SavedModel with nodes, in an empty folder."""
    if isinstance(model, str | os.PathLike):
        shutil.copytree(model, folder, dirs_exist_ok=True)
    elif signatures is None and options is None and _is_keras_model(model):
        model.export(str(folder), verbose=False)
    else:
        tf.saved_model.save(model, str(folder), signatures, options)


def _is_keras_model(model: Any) -> bool:
    return isinstance(model, tf.keras.Model) and hasattr(model, "export")


def _needed(found: dict[str, set[str]]) -> tuple[contents.Needed, ...]:
    needed = []
    for op_name in sorted(set(found) - {function_op.NAME}):  # whose function is in the model
        for digest in sorted(found[op_name]):
            try:
                needed.append(contents.needed(op_name, digest or OPS.digest_at(op_name)))
            except KeyError:
                raise ValueError(
                    f"the model has nodes of a version of {op_name} ({digest}) that this process "
                    "does not know: import the module, or load the library, that it was made with"
                ) from None
    return tuple(needed)


def _libraries(
    needed: Sequence[contents.Needed], given: Sequence[str | os.PathLike[str]]
) -> list[Path]:
    """The folders of the libraries that define these ops, in order; those that are given first."""
    folders = {Path(folder): None for folder in given}
    stated = {op for folder in folders for op in contents.defined(folder)}
    for one in needed:
        if (one.op, one.digest) in stated:
            continue
        op = OPS.version(one.digest)
        if not isinstance(op, LoadedOp):
            raise ValueError(
                f"{one.op} ({one.place}) is in no built library: build one of its file "
                "(composite.build) and name it in libraries="
            )
        folders[op.library_folder] = None
    return list(folders)
