"""A compiled model: called, saved and loaded."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf

from composite.hybrid.opened import OpenedModel
from composite.hybrid.report import HybridReport


class HybridModule:
    """A model as a module of TVM's Relax VM. Several threads may call it at once.

    Attributes:
        description: what the module says of itself.
        executable: what TVM's compiler returned, a tvm.runtime.Executable; None of a loaded module.
        report: what runs where; None of a loaded module.
    """

    def __init__(
        self, opened: OpenedModel, executable: Any = None, report: HybridReport | None = None
    ) -> None:
        """Made by `composite.hybrid.compile` and `composite.hybrid.load`."""
        self._opened = opened
        self.description = opened.description
        self.executable = executable
        self.report = report
        self._takes_list = self.description.takes_list

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module as the model is called, with values for tensors.

        Returns:
            What the model returns, in tuples, lists and dicts.

        Raises:
            TypeError: the arguments have another structure.
            ValueError: an input has another shape.
            RuntimeError: while a graph is traced; or TVM's own, where a kernel fails, or inputs of
                different sizes meet.
            tf.errors.OpError: an op in TensorFlow fails; or a size is less than a kernel takes.
        """
        if not tf.executing_eagerly():
            raise RuntimeError(
                f"the module of {self.description.name} is called while a graph is traced: call it "
                "eagerly, or by tf.py_function"
            )
        outputs = self._opened.call(args) if self._takes_list and not kwargs else NotImplemented
        if outputs is NotImplemented:
            outputs = self._opened(self.description.arguments(args, kwargs))
        return self.description.result(outputs)

    @property
    def ir(self) -> str:
        """What was compiled, a program of Relax as text: calls of kernels, and of TensorFlow.

        Of a loaded module, too. Constants are named by their place alone; a call of TensorFlow has
        the digest of its graph.
        """
        return self.description.ir

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the module to one file, a shared library: "model.so".

        It holds machine code for CPUs as this one, the graphs and all weights. OSError where there
        is no room or no permission; ValueError for another kind of name, and of a loaded module,
        whose file is there.
        """
        file = Path(path)
        if file.suffix != ".so":
            raise ValueError(f'a module is saved as a shared library, "model.so", not as {file}')
        if self.executable is None:
            raise ValueError("the module was loaded from a file: copy that")
        made = file.with_name(f".{os.getpid()}.{file.name}")
        try:
            self.executable.export_library(str(made))
            os.replace(made, file)
        finally:
            made.unlink(missing_ok=True)


def opened(executable: Any) -> OpenedModel:
    """What TVM's compiler returned, opened as its file would be."""
    with tempfile.TemporaryDirectory(prefix="composite-") as folder:
        file = Path(folder) / "module.so"
        executable.export_library(str(file))
        return OpenedModel(file)


def load(path: str | os.PathLike[str]) -> HybridModule:
    """Loads a module that `HybridModule.save` wrote. Its machine code runs in this process.

    Neither the model's Python code nor a compiler is needed; TVM and TensorFlow are.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no such module, or has kernels for another CPU.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"{file} is not there")
    return HybridModule(OpenedModel(file))
