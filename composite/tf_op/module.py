"""Libraries of functions: from a file, or from objects of TVM that live in this process.

TVM itself is imported by whoever has such an object, never here.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from pathlib import Path
from typing import Any

import tensorflow as tf

from composite.binding import native
from composite.binding.records import NodeDef, record
from composite.kernels import signatures
from composite.kernels.signatures import Parameter
from composite.tf_op import declared, live
from composite.tf_op.function import TvmFunction, tvm_device
from composite.tf_op.output_shapes import Outputs

_LIBRARIES = {
    "ffi": ("tvm_ffi", "libtvm_ffi.so"),
    "runtime": ("tvm", "libtvm_runtime.so"),
    "cuda": ("tvm", "libtvm_runtime_cuda.so"),
}


_LOADED: set[str] = set()


def is_loaded(library: str) -> bool:
    """Whether this process has loaded a library, by what nodes call it."""
    return library in _LOADED


class Module:
    """A library of functions.

    Attributes:
        library: what nodes call it by: the SHA-256 of its file, in hex; "process-<n>" for an object
            that no file holds.
        path: the file; None for such an object.
        functions: the names that are known before TVM's runtime is asked: those of kernels.
    """

    def __init__(
        self,
        source: Any = None,
        *,
        lib_path: str | os.PathLike[str] | None = None,
        sha256: str = "",
        ir: Any = None,
    ) -> None:
        """Loads a library, which runs native code: load only what you would run.

        Args:
            source: the path of a shared library that TVM exported, or that has functions of TVM's
                C ABI (`__tvm_ffi_<name>`); or a live object of TVM: what tvm.compile returns, a
                tvm.runtime.Module, a relax.VirtualMachine. What tvm.compile returned is exported
                into the cache folder, and is then as good as a file; others serve this process.
            lib_path: the path of a shared library, in place of `source`.
            sha256: what the file has to have.
            ir: the tvm.IRModule that a Relax program was compiled from, for the shapes and dtypes
                of what its functions return, which its library does not have.

        Raises:
            tf.errors.NotFoundError: there is no such file.
            tf.errors.DataLossError: the file has another SHA-256.
            tf.errors.InvalidArgumentError: it is no library for this machine, or is cut short.
            tf.errors.FailedPreconditionError: it needs a library that is not here. One with parts
                that are not kernels, such as a Relax program, needs libtvm_runtime.
            TypeError: `source` is none of these; or `source` and `lib_path` are both given, or
                neither.
        """
        if (source is None) == (lib_path is None):
            raise TypeError(
                "Module takes a library: give its path or an object of TVM as the first argument, "
                "or its path as lib_path, and not both"
            )
        source = lib_path if source is None else source
        if isinstance(source, (str, os.PathLike)):
            found: Path | live.Object = Path(source).resolve()  # the runtime follows no links
        else:
            found = live.exported(source)
        if isinstance(found, live.Object):
            self.path = None
            answer = _load_object(found)
        else:
            self.path = found
            request = record(path=str(self.path), sha256=sha256, **_tvm_libraries())
            answer = NodeDef.FromString(native.call("composite_load_foreign_library", request))
        self._ir = ir
        self.library: str = answer.attr["library"].s.decode()
        _LOADED.add(self.library)
        self.functions = tuple(name.decode() for name in answer.attr["functions"].list.s)

    def func(  # noqa: PLR0913 - what users say of a function
        self,
        name: str,
        output_shape: Any = None,
        output_dtype: Any = None,
        *,
        outputs: int = 1,
        returns: bool | None = None,
        stateful: bool = False,
        device: str = "CPU",
        xla: str | None = None,
    ) -> TvmFunction:
        """A function of the library as an op.

        What TVM compiled says itself which tensors a function takes; its last ones are the outputs.
        So neither their dtypes nor their shapes need be given, as long as each size of an output
        follows from the inputs'.

        Args:
            name: the function's.
            output_shape: the output's: a list of sizes and scalar tensors, a vector of integers,
                `same_as(input)`, or a function that is given the shape of each input (a tuple of
                sizes, with a scalar tensor for one that is not known) and returns one of these.
                None: what the library says, or the shape of the first input where it says nothing.
                With several outputs, a list of shapes.
            output_dtype: the output's, or a list with one for each of several outputs. None: what
                the library says, or float32.
            outputs: how many there are, where their dtypes are not given. A call then gives a list
                unless it is 1.
            returns: whether the function returns its outputs, rather than being passed them behind
                its inputs to fill them. None: functions of a Relax program do, others do not. Such
                outputs are copied, and may have shapes that are not known before: None says so for
                a dim, or for the whole shape.
            stateful: whether calls have effects or differ: TensorFlow then neither merges nor drops
                them, nor runs one while it makes a graph.
            device: "GPU" for a function that runs on NVIDIA's GPUs. It is passed tensors there and
                gives its work to TensorFlow's stream, which is TVM's stream for the call. Its nodes
                run on GPUs alone. A device that TVM has and TensorFlow has not, by TVM's name and
                a number, "ext_dev:0": its nodes run on the CPU, and each call copies the inputs
                there and the outputs back. What registers the device has to be loaded before.
            xla: "custom_call" has code that XLA compiles for the CPU (`jit_compile=True`) call the
                function, with shapes that are known while it compiles. None: compiling is an error.

        Raises:
            tf.errors.NotFoundError: there is no function of that name.
            tf.errors.FailedPreconditionError: TVM has no such device in this process.
            tf.errors.InvalidArgumentError: `device` is no name of one.
            ValueError: `output_shape` is none; or it is not given, and a size of an output follows
                from no input; or the function has no such outputs.
        """
        answer = _find_function(self.library, name, device)
        if returns is None:
            returns = answer.attr["returns"].b
        if not returns:
            output_shape, output_dtype = self._declared(name, output_shape, output_dtype, outputs)
        else:
            output_shape, output_dtype = self._returned(name, output_shape, output_dtype, outputs)
        found = Outputs.of(output_shape, output_dtype, returns=returns)
        return TvmFunction(self.library, name, found, stateful=stateful, device=device, xla=xla)

    def _declared(self, name: str, shape: Any, dtype: Any, count: int) -> tuple[Any, Any]:
        """The shape and dtype of outputs, by the library's own word where they are not given."""
        if shape is not None and dtype is not None:
            return shape, dtype
        parameters = self._signature(name)
        if parameters is None:
            return shape, _unsaid(count) if dtype is None else dtype
        single = count == 1 if dtype is None else not isinstance(dtype, (list, tuple))
        if dtype is not None:
            count = 1 if single else len(dtype)
        dtypes = declared.dtypes(name, parameters, count)
        if shape is None:
            shapes = declared.shapes(name, parameters, count)
            shape = shapes[0] if single else shapes
        if dtype is None:
            dtype = dtypes[0] if single else dtypes
        return shape, dtype

    def _returned(self, name: str, shape: Any, dtype: Any, count: int) -> tuple[Any, Any]:
        """The shape and dtype of what a function returns, by the IRModule where there is one."""
        if self._ir is None:
            return shape, _unsaid(count) if dtype is None else dtype
        functions = {str(one.name_hint): body for one, body in self._ir.functions.items()}
        if name not in functions:
            raise ValueError(f"ir has no function {name}, but {', '.join(functions)}")
        try:
            own_shape, own_dtype = declared.returned(functions[name])
        except ValueError as error:
            raise ValueError(
                f"{name}: {error}: give output_dtype, and load it without ir"
            ) from error
        return own_shape if shape is None else shape, own_dtype if dtype is None else dtype

    def _signature(self, name: str) -> tuple[Parameter, ...] | None:
        if self.path is None:
            return None
        try:
            content = self.path.read_bytes()
        except OSError:  # the library was mapped from a copy: its file may be gone
            return None
        if hashlib.sha256(content).hexdigest() != self.library:
            return None
        return signatures.signature(content, name)

    def __getitem__(self, name: str) -> TvmFunction:
        """`func(name)`: one output, of the dtype and shape that the library says.

        Where it says nothing, of float32 and the shape of the first input.
        """
        return self.func(name)

    def asset(self) -> tf.saved_model.Asset:
        """The file as an asset: as an attribute of a model, it is saved with it.

        `composite.load_model(folder, native_code=True)` then finds it there.

        Raises:
            ValueError: no file holds the functions.
        """
        if self.path is None:
            raise ValueError(
                "these functions live in this process alone: a model can carry a library that is a "
                "file, such as tvm.compile's result exported"
            )
        return tf.saved_model.Asset(str(self.path))

    def __repr__(self) -> str:
        return f"<TVM library {self.path or self.library}>"


def function(  # noqa: PLR0913 - as Module.func
    packed: Any,
    output_shape: Any = None,
    output_dtype: Any = "float32",
    *,
    returns: bool = False,
    stateful: bool = False,
    device: str = "CPU",
    xla: str | None = None,
) -> TvmFunction:
    """A live function of TVM (tvm_ffi.Function, which packed Python functions are too) as an op.

    The other arguments are those of `Module.func`. Its nodes run in this process only, one call at
    a time.

    Raises:
        TypeError: `packed` is no function of TVM.
    """
    answer = _load_object(live.function(packed, returns=returns))
    library = answer.attr["library"].s.decode()
    outputs = Outputs.of(output_shape, output_dtype, returns=returns)
    name = "a function of this process"
    _find_function(library, name, device)
    return TvmFunction(library, name, outputs, stateful=stateful, device=device, xla=xla)


def _unsaid(outputs: int) -> Any:
    """The dtypes of so many outputs of which nobody says anything."""
    return "float32" if outputs == 1 else ["float32"] * outputs


def _find_function(library: str, name: str, device: str) -> NodeDef:
    """What the runtime says of a function; raises where it or its device is missing."""
    request = record(library=library, function=name, device=tvm_device(device), **_tvm_libraries())
    return NodeDef.FromString(native.call("composite_find_foreign_function", request))


def _load_object(source: live.Object) -> NodeDef:
    request = record(
        object=source.handle, serial=source.serial, returns=source.returns, **_tvm_libraries()
    )
    return NodeDef.FromString(native.call("composite_load_foreign_object", request))


def _tvm_libraries() -> dict[str, str]:
    """Where the libraries of TVM's packages are, which are not imported."""
    return {key: _find(*names) for key, names in _LIBRARIES.items()}


def _find(package: str, library: str) -> str:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return ""
    path = Path(spec.origin).parent / "lib" / library
    return str(path) if path.is_file() else ""
