"""`composite.load`: a built library, with TensorFlow or without.

Imports neither before it is known which. Not for: the two ways themselves (loading.py,
composite/standalone).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from composite.binding import tensorflow_version

if TYPE_CHECKING:
    from composite.ops.library import Library
    from composite.standalone.library import StandaloneLibrary


@overload
def load(folder: str | os.PathLike[str], *, tensorflow: Literal[True] = True) -> Library: ...
@overload
def load(folder: str | os.PathLike[str], *, tensorflow: Literal[False]) -> StandaloneLibrary: ...
def load(folder: str | os.PathLike[str], *, tensorflow: bool = True) -> Library | StandaloneLibrary:
    """Loads a folder that `composite.build` wrote. This runs native code of the folder.

    Args:
        folder: the library.
        tensorflow: registers the ops and their gradients with TensorFlow. False: the library's
            kernels are functions of NumPy's arrays and of all that have `__dlpack__`, and
            TensorFlow is not imported; calls that no kernel covers are errors.

    Returns:
        The library. Its ops are attributes with their Python names; without TensorFlow they are
        items, too. Loading it again returns the same object.

    Raises:
        FileNotFoundError: if the folder is not a library.
        ImportError: if it was built for another TensorFlow, which `tensorflow=False` does not ask.
        ValueError: if a file is damaged, or an op of the same name has another body here.

    All errors are raised before any code of the folder runs.
    """
    if tensorflow:
        tensorflow_version.check()
        from composite.aot import loading

        return loading.load(folder)
    from composite.standalone import library

    return library.load(Path(folder).absolute())
