"""What a saved model needs, as text: for `composite info`, and inside the model itself.

TensorFlow says of a model with ops that it lacks no more than "Op type not registered".
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from composite.binding.records import PROGRAM
from composite.ops import call, function_op, functions
from composite.ops.registry import OPS
from composite.saving import contents, keras_archive, saved_model
from composite.tf_op import saved_models as tvm_libraries

README = "README.txt"
_OWN = "Composite"  # what the names of the runtime's own ops begin with
_HOW = """\
Load what defines these ops first, in Python by composite.load_model (package tf-composite), or in C
by composite_load_library of libcomposite_runtime.so and then TensorFlow's own loader. To run the
model without them, save it in the portable form: composite export MODEL -o OUT --ops portable"""
_HOW_LIBRARIES = """\
The functions are machine code: composite.load_model(MODEL, native_code=True) loads the libraries
that lie inside, and composite.tf_op.Module(PATH) one that does not."""
_HOW_KERNELS = """\
The machine code in region-kernels makes the model faster. TensorFlow's own loader leaves it alone
and runs the same model; composite.load_model uses it, with native_code=True, and so does
composite_load_library of libcomposite_runtime.so."""


@dataclass(frozen=True)
class ModelInfo:
    """What a saved model needs.

    Attributes:
        framework: the version of TensorFlow or Keras that saved it: "TensorFlow 2.21.0".
        ops: the composites, with what is known of where each was defined.
        runtime_ops: ops of the runtime itself, which any process with this package has.
        other_ops: ops that neither TensorFlow nor this process has.
        libraries: the built libraries that lie inside.
        functions: the functions of TVM libraries, by the SHA-256 of the library.
        inside: which of those libraries the model carries.
        has_kernels: whether it has kernels of regions.
    """

    framework: str
    ops: tuple[contents.Needed, ...]
    runtime_ops: tuple[str, ...]
    other_ops: tuple[str, ...]
    libraries: tuple[str, ...]
    functions: Mapping[str, tuple[str, ...]]
    inside: frozenset[str]
    has_kernels: bool

    def __str__(self) -> str:
        parts = [f"This model was saved by {self.framework}."]
        if self.ops:
            lines = [_op_line(one) for one in self.ops]
            parts.append(_block("It has nodes of composite ops, which it needs:", lines))
            if self.libraries:
                named = [f"libraries inside that define them: {', '.join(self.libraries)}"]
                parts[-1] = _block(parts[-1], named)
        if self.runtime_ops:
            parts.append(_block("It needs the runtime of tf-composite for:", self.runtime_ops))
        if self.ops or self.runtime_ops:
            parts.append(_HOW)
        if self.functions:
            lines = [self._library_line(*one) for one in sorted(self.functions.items())]
            parts.append(_block("It calls functions of TVM libraries:", lines))
            parts.append(_HOW_LIBRARIES)
        if self.other_ops:
            heading = "It has nodes of other ops, which TensorFlow and this process lack:"
            parts.append(_block(heading, self.other_ops))
        if self.has_kernels:
            parts.append(_HOW_KERNELS)
        if len(parts) == 1:
            parts.append("It needs nothing but TensorFlow.")
        return "\n\n".join(parts)

    def _library_line(self, library: str, names: tuple[str, ...]) -> str:
        where = "inside" if library in self.inside else "not inside"
        return f"{', '.join(names)} of the library with SHA-256 {library} ({where})"


def read(model: Path) -> ModelInfo:
    """What a SavedModel or a file of Keras needs; nothing of it is loaded.

    FileNotFoundError where there is none, ValueError for one that is damaged.
    """
    if model.suffix == keras_archive.SUFFIX and not model.is_dir():
        return _of_keras(model)
    return _of_saved_model(model, contents.read(model))


def write(needs: contents.Contents, folder: Path) -> None:
    """Has a model say what it needs: for `composite.load_model`, and as text for people."""
    needs.write(folder)
    info = _of_saved_model(folder, needs) if (folder / saved_model.FILE).is_file() else None
    text = str(info or _of_contents("Keras", needs, needs.ops))
    (folder / contents.FOLDER / README).write_text(text + "\n", encoding="utf-8")


def _of_saved_model(model: Path, needs: contents.Contents) -> ModelInfo:
    saved = saved_model.read(model)
    versions = {one.meta_info_def.tensorflow_version for one in saved.meta_graphs}
    nodes = [node for one in saved.meta_graphs for node in functions.nodes(one.graph_def)]
    stated = {(one.op, one.digest) for one in needs.ops}
    found = {
        (node.op, node.attr[PROGRAM].s.decode())
        for node in nodes
        if node.op != function_op.NAME and PROGRAM in node.attr
    }
    ops = (*needs.ops, *(_known(*one) for one in sorted(found - stated)))
    composites = {one.op for one in ops}
    names = {node.op for node in nodes} - composites
    called = tvm_libraries.called(saved)
    return ModelInfo(
        f"TensorFlow {', '.join(sorted(versions))}",
        ops,
        tuple(
            sorted(name for name in names if name.startswith(_OWN) and OPS.current(name) is None)
        ),
        tuple(sorted(name for name in names if call.op_def(name) is None)),
        tuple(sorted(needs.libraries)),
        called,
        frozenset(called) & tvm_libraries.inside(model).keys() if called else frozenset(),
        bool(needs.kernels),
    )


def _of_keras(path: Path) -> ModelInfo:
    named = keras_archive.named_ops(path)
    folder = keras_archive.extracted(path, native_code=False)
    with zipfile.ZipFile(path) as archive:
        try:
            version = json.loads(archive.read("metadata.json"))["keras_version"]
        except (KeyError, ValueError, TypeError):
            version = "of an unknown version"
    return _of_contents(f"Keras {version}", contents.read(folder), named)


def _of_contents(
    framework: str, needs: contents.Contents, ops: tuple[contents.Needed, ...]
) -> ModelInfo:
    libraries = tuple(sorted(needs.libraries))
    return ModelInfo(framework, ops, (), (), libraries, {}, frozenset(), bool(needs.kernels))


def _known(op_name: str, digest: str) -> contents.Needed:
    try:
        return contents.needed(op_name, digest)
    except KeyError:
        return contents.Needed(op_name, digest, "", "")


def _op_line(one: contents.Needed) -> str:
    where = f"of {one.module} ({one.place})" if one.module else "defined where the model was made"
    return f"{one.op} {where}, version {one.digest[:16]}"


def _block(heading: str, lines: Any) -> str:
    return "\n".join([heading, *(f"  {line}" for line in lines)])
