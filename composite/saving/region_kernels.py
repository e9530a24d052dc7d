"""The kernels of regions inside a SavedModel, beside the libraries of its composites.

Each is a shared object as the cache has it. What they are kernels of, and what was measured, is in
kernels.pb, which composite/runtime/api/model_kernels.h describes and reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDef
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.binding import native
from composite.binding.kernel_record import KernelRecord
from composite.binding.log import logger
from composite.binding.records import record
from composite.kernels.key import sha256
from composite.saving import contents

FOLDER = contents.FOLDER / "region-kernels"  # no library can be called so
_DESCRIPTION = "kernels.pb"


def write(model: Path, regions: Iterable[FunctionDef], kernels: Iterable[KernelRecord]) -> str:
    """Adds regions and their kernels to those in a saved model's folder.

    `regions` are their functions and what these run. Returns the hash of what describes them all,
    which `load` asks for. Kernels for GPUs, and those whose file is gone, are left out.
    """
    folder = model / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    found = _read(folder)
    refused = GraphDef.FromString(native.call("composite_refused_nodes"))
    functions = {one.signature.name: one for one in (*found.library.function, *regions)}
    nodes = {(node.op, node.name): node for node in (*found.node, *refused.node)}
    for kernel in kernels:
        if (copied := _copied(kernel, folder)) is not None:
            nodes[copied.op, copied.name] = copied.to_node_def()
    written = GraphDef()
    written.library.function.extend(functions[name] for name in sorted(functions))
    written.node.extend(nodes[key] for key in sorted(nodes))
    data = written.SerializeToString(deterministic=True)
    (folder / _DESCRIPTION).write_bytes(data)
    return sha256(data)


def count(model: Path) -> int:
    """How many kernels lie in a saved model's folder."""
    return sum(1 for _ in (model / FOLDER).glob("*.so"))


def load(model: Path, digest: str, *, native_code: bool) -> None:
    """Has this process use what `write` left in a saved model.

    Without `native_code` no kernel: only which nodes have none, so that regions leave them outside.
    ValueError for files that are not those that were written.
    """
    folder = str((model / FOLDER).absolute())
    try:
        native.call(
            "composite_load_kernels", record(folder=folder, digest=digest, native_code=native_code)
        )
    except tf.errors.OpError as error:
        raise ValueError(
            f"{model} has not the kernels that were saved with it: {error.message}"
        ) from error


def _read(folder: Path) -> GraphDef:
    path = folder / _DESCRIPTION
    return GraphDef.FromString(path.read_bytes()) if path.is_file() else GraphDef()


def _copied(kernel: KernelRecord, folder: Path) -> KernelRecord | None:
    """The kernel with its file in a folder; None where that cannot be."""
    if kernel.device != "CPU" or kernel.library is None:
        return None
    try:
        data = Path(kernel.library).read_bytes()
    except OSError as error:
        logger.info("kernel %s is left out of the model: %s", kernel.name, error)
        return None
    name = f"{kernel.library_sha256}.so"
    if sha256(data) != kernel.library_sha256:
        logger.warning("kernel %s is left out of the model: its file was changed", kernel.name)
        return None
    (folder / name).write_bytes(data)
    return replace(kernel, library=name)
