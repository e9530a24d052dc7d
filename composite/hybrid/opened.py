"""A module's file as this process has opened it.

The runtime calls its VM, as in programs without Python (composite/runtime/hybrid_c_api.h).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from composite.binding import native
from composite.hybrid.structure import Description
from composite.hybrid.transfer import on_cpu
from composite.ops import call

_ROOM = 4096  # bytes of an error's text
_NOT_FOUND = 5


class OpenedModel:
    """An open file, whose calls may come from several threads at once.

    Attributes:
        description: what the module says of itself.
    """

    def __init__(self, file: Path) -> None:
        """Open a file. FileNotFoundError; ValueError if it is no module, or for another CPU."""
        import tvm  # noqa: F401 - maps its libraries, which the runtime then finds

        library = native.library()
        library.composite_hybrid_description.restype = ctypes.c_char_p
        model, error = ctypes.c_void_p(), ctypes.create_string_buffer(_ROOM)
        code = library.composite_open_hybrid(
            str(file).encode(), ctypes.byref(model), error, ctypes.c_size_t(_ROOM)
        )
        if code:
            kind = FileNotFoundError if code == _NOT_FOUND else ValueError
            raise kind(error.value.decode(errors="replace"))
        self.description = Description.of_json(library.composite_hybrid_description(model))
        (self._call,) = native.python_functions(
            "composite_python_hybrid", model, ctypes.py_object(_fail)
        )

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs for eager tensors. Raises as `HybridModule`."""
        outputs = self.call(tuple(inputs))
        if outputs is NotImplemented:
            outputs = self.call(tuple(map(on_cpu, inputs)))
        result: list[Any] = outputs
        return result

    def call(self, inputs: tuple[Any, ...]) -> Any:
        """The same; NotImplemented if the module does not take them as they are.

        That is: eager tensors of its dtypes and shapes, in the memory of this host.
        """
        return self._call(call.context_capsule(), inputs)


def _fail(code: int, message: str, of_tvm: bool | None) -> NoReturn:
    if of_tvm:
        raise RuntimeError(message)
    raise native.error(code, message)
