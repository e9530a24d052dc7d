"""assets.extra/composite/ of a SavedModel: which ops the model needs, libraries of them, kernels.

TensorFlow's loaders leave `assets.extra` alone.

Not for: the same as text (info.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from composite.aot import inputs, manifest
from composite.binding import json_text
from composite.ops.registry import OPS

FOLDER = Path("assets.extra", "composite")
_FORMAT = 1
_NEEDS = "needs.json"


@dataclass(frozen=True)
class Needed:
    """An op that a model has nodes of.

    Attributes:
        op: its name in TensorFlow.
        digest: the version of its body.
        module: the Python module, or the library, that defined it where the model was saved.
        place: file and line of the body.
    """

    op: str
    digest: str
    module: str
    place: str


@dataclass(frozen=True)
class Contents:
    """What a saved model says of its composites.

    Attributes:
        ops: those that it needs.
        libraries: of each library that lies inside, by its folder: the hash of its manifest.
        kernels: the hash of what describes the kernels of regions (region_kernels.py); "" for none.
    """

    ops: tuple[Needed, ...]
    libraries: dict[str, str]
    kernels: str = ""

    def write(self, model: Path) -> None:
        """Writes the files, the libraries themselves left out."""
        folder = model / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        content = {
            "format": _FORMAT,
            "ops": [asdict(op) for op in self.ops],
            "libraries": self.libraries,
            "kernels": self.kernels,
        }
        text = json.dumps(content, indent=1, sort_keys=True) + "\n"
        (folder / _NEEDS).write_text(text, encoding="utf-8")


def read(model: Path) -> Contents:
    """What a saved model says; nothing where it says nothing.

    ValueError for a damaged file.
    """
    path = model / FOLDER / _NEEDS
    if not path.is_file():
        return Contents((), {})
    try:
        content: dict[str, Any] = json_text.parsed(path.read_text(encoding="utf-8"))
        known = content["format"] == _FORMAT
        ops = tuple(Needed(**op) for op in content["ops"])
        libraries = {str(name): str(digest) for name, digest in content["libraries"].items()}
        kernels = str(content.get("kernels", ""))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is damaged ({error!r}): save the model again") from error
    if not known:
        raise ValueError(f"{path} has format {content['format']}, not {_FORMAT}: save it again")
    if any(Path(name).name != name or name.startswith(".") for name in libraries):
        raise ValueError(f"{path} names a library that is not a folder beside it")
    return Contents(ops, libraries, kernels)


def needed(op_name: str, digest: str) -> Needed:
    """An op of this process, as a model that is saved now states it. KeyError: it is unknown."""
    op = OPS.version(digest)
    return Needed(op_name, digest, op.__module__, op.place)


def defined(library: Path) -> set[tuple[str, str]]:
    """The ops that a built library defines, by name and digest. Raises as `manifest.read`."""
    return {(str(op["op"]), str(op["digest"])) for op in manifest.read(library)["ops"]}


def copied(folders: Iterable[Path], model: Path) -> dict[str, str]:
    """Copies built libraries into a saved model; their folders and the hashes of their manifests.

    Each file is compared with its manifest. ValueError: one is not what that says, or two have a
    name.
    """
    hashes: dict[str, str] = {}
    for folder in folders:
        content = manifest.read(folder)
        name = str(content["name"])
        if name in hashes:
            raise ValueError(f"two libraries are called {name}: {folder} is the second")
        target = model / FOLDER / name
        target.mkdir(parents=True)
        for file in content["files"]:
            os.close(manifest.open_checked(folder, content, file))
            shutil.copyfile(folder / file, target / file)
        for file in (manifest.NAME, inputs.TIMINGS):  # which a library can do without
            if (folder / file).is_file():
                shutil.copyfile(folder / file, target / file)
        hashes[name] = manifest_hash(target)
    return hashes


def manifest_hash(library: Path) -> str:
    """What a model says of a library that lies inside: its manifest holds all other hashes."""
    return hashlib.sha256((library / manifest.NAME).read_bytes()).hexdigest()
