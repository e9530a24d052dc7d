"""A compiled model: called, saved and loaded."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import tensorflow as tf

from composite.compiler.tvm import Target
from composite.hybrid import runtime
from composite.hybrid.report import HybridReport
from composite.hybrid.structure import Description
from composite.hybrid.transfer import to_tensorflow, to_tvm


class HybridModule:
    """A model as a module of TVM's Relax VM.

    Attributes:
        executable: what TVM's compiler or loader made: a tvm.runtime.Executable or Module.
        description: what the module says of itself.
        report: what runs where; None of a loaded module.
    """

    def __init__(
        self, executable: Any, description: Description, report: HybridReport | None
    ) -> None:
        """Made by `composite.hybrid.compile` and `composite.hybrid.load`."""
        import tvm

        self.executable = executable
        self.description = description
        self.report = report
        self.vm = tvm.relax.VirtualMachine(executable, tvm.runtime.cpu())
        self._main = self.vm[runtime.MAIN]
        self._one_call = threading.Lock()
        self._kept = runtime.Kept()
        with self._kept.in_use(), runtime.errors_of_tensorflow():
            self.vm[runtime.OPEN]()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module as the model is called, with values for tensors.

        Returns:
            What the model returns, in tuples, lists and dicts.

        Raises:
            TypeError: the arguments have another structure.
            ValueError: an input has another shape.
            RuntimeError: while a graph is traced; or TVM's own, where a kernel fails, or inputs of
                different sizes meet.
            tf.errors.OpError: an op in TensorFlow fails.
        """
        if not tf.executing_eagerly():
            raise RuntimeError(
                f"the module of {self.description.name} is called while a graph is traced: call it "
                "eagerly, or by tf.py_function"
            )
        given = [to_tvm(x) for x in self.description.arguments(args, kwargs)]
        # The VM has one stack.
        with self._one_call, self._kept.in_use(), runtime.errors_of_tensorflow():
            outputs = self._main(*given)
        return self.description.result([to_tensorflow(y) for y in outputs])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the module to one file, a shared library: "model.so".

        It holds machine code for CPUs as this one, the graphs and all weights. OSError where there
        is no room or no permission.
        """
        file = Path(path)
        if file.suffix != ".so":
            raise ValueError(f'a module is saved as a shared library, "model.so", not as {file}')
        made = file.with_name(f".{os.getpid()}.{file.name}")
        try:
            self.executable.export_library(str(made))
            os.replace(made, file)
        finally:
            made.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> HybridModule:
    """Loads a module that `HybridModule.save` wrote. Its machine code runs in this process.

    Neither the model's Python code nor a compiler is needed; TVM and TensorFlow are.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no such module, or has kernels for another CPU.
    """
    import tvm

    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"{file} is not there")
    runtime.register()
    try:
        library = tvm.runtime.load_module(str(file.resolve()))
        vm = tvm.relax.VirtualMachine(library, tvm.runtime.cpu())
        content = vm[runtime.DESCRIBE]().numpy().tobytes()
    except (RuntimeError, AttributeError, ValueError) as error:
        raise ValueError(f"{file} is no module that composite.hybrid wrote: {error}") from error
    description = Description.of_json(content)
    if description.isa > Target.host().isa:
        raise ValueError(
            f"{file} has kernels for {description.isa}, and this CPU has {Target.host().isa}: "
            "compile the model here, or with COMPOSITE_ISA set to that level"
        )
    return HybridModule(library, description, None)
