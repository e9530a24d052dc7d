"""`composite.load(folder, tensorflow=False)`: ops of a built library as functions of arrays."""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from composite.standalone import native


class StandaloneOp:
    """An op whose kernels run without TensorFlow.

    Called with arrays that lie in the CPU's memory and are contiguous: NumPy's, or any with
    `__dlpack__`. Attributes are keyword arguments. Returns an array for each output, one alone or a
    tuple: NumPy's, or of the library that the first other input is of.

    Raises:
        TypeError: if an input is no array, or the arguments are not those of the op.
        ValueError: if no kernel covers the dtypes and shapes, or an array is not contiguous.
        LookupError: if there is no kernel with these attributes.
    """

    def __init__(self, kernels: Any, name: str, signature: Mapping[str, Any]) -> None:
        self.__name__ = name
        self.__doc__ = signature["doc"]
        self._kernels = kernels
        self._types = {attr: kind for attr, kind, _, _ in signature["attributes"]}
        self._inputs = len(signature["inputs"])
        self._has_lists = any(is_list for _, is_list in signature["inputs"])
        self.__signature__ = _signature(signature)
        self._functions: dict[str, Callable[..., Any]] = {}
        self._plain: Callable[..., Any] | None = None

    def __call__(self, *inputs: Any, **given: Any) -> Any:
        """Runs a kernel; see the class."""
        if self._plain is not None and not given and len(inputs) == self._inputs:
            return self._plain(*inputs)
        return self._bound(inputs, given)

    def bind(self, **attributes: Any) -> Callable[..., Any]:
        """The function of the inputs alone, given one by one, with these attributes.

        For many calls: it has nothing left to look up. TypeError or LookupError as for a call.
        """
        return self._function(self._arguments(self.__signature__.bind_partial, (), attributes))

    def __repr__(self) -> str:
        return f"<composite op {self.__name__}{self.__signature__}, without TensorFlow>"

    def _bound(self, inputs: tuple[Any, ...], given: Mapping[str, Any]) -> Any:
        arguments = self._arguments(self.__signature__.bind, inputs, given)
        function = self._function(arguments)
        if not given and not self._has_lists:
            self._plain = function
        values = [value for name, value in arguments.items() if name not in self._types]
        return function(*itertools.chain.from_iterable(map(_flat, values)))

    def _arguments(
        self,
        bind: Callable[..., inspect.BoundArguments],
        inputs: tuple[Any, ...],
        given: Mapping[str, Any],
    ) -> dict[str, Any]:
        try:
            bound = bind(*inputs, **given)
        except TypeError as error:
            raise TypeError(f"{self.__name__}: {error}") from None
        bound.apply_defaults()
        return bound.arguments

    def _function(self, arguments: Mapping[str, Any]) -> Callable[..., Any]:
        missing = [name for name in self._types if name not in arguments]
        if missing:
            raise TypeError(f"{self.__name__}: the attribute {missing[0]} has no default: give it")
        try:
            values = {name: _plain(kind, arguments[name]) for name, kind in self._types.items()}
            text = json.dumps(values, sort_keys=True)
        except (TypeError, ValueError, struct.error) as error:
            kinds = ", ".join(f"{name}: {kind}" for name, kind in self._types.items())
            raise TypeError(f"{self.__name__} has attributes ({kinds}): {error}") from error
        if text not in self._functions:
            self._functions[text] = native.functions().find(self._kernels, self.__name__, text)
        return self._functions[text]


class StandaloneLibrary(Mapping[str, StandaloneOp]):
    """The ops of a folder by their Python names; they are its attributes, too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kernels = native.functions().open(str(folder))
        self._ops = {
            name: StandaloneOp(kernels, name, json.loads(signature))
            for name, signature in native.functions().signatures(kernels)
        }

    def __getitem__(self, name: str) -> StandaloneOp:
        if name not in self._ops:
            known = ", ".join(self._ops) or "none"
            raise KeyError(f"the library in {self.folder} has no op {name!r}: {known}")
        return self._ops[name]

    def __getattr__(self, name: str) -> StandaloneOp:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._ops)

    def __len__(self) -> int:
        return len(self._ops)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._ops})

    def __repr__(self) -> str:
        return f"<composite library {self.folder.name}, without TensorFlow: {', '.join(self._ops)}>"


@functools.cache
def load(folder: Path) -> StandaloneLibrary:
    """The library of an absolute path, opened once."""
    return StandaloneLibrary(folder)


def _signature(described: Mapping[str, Any]) -> inspect.Signature:
    kinds = inspect.Parameter
    inputs = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name, _ in described["inputs"]]
    attributes = [
        kinds(name, kinds.KEYWORD_ONLY, default=default if has_default else kinds.empty)
        for name, _, has_default, default in described["attributes"]
    ]
    return inspect.Signature([*inputs, *attributes])


def _flat(value: Any) -> tuple[Any, ...] | list[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def _plain(kind: str, value: Any) -> Any:
    """An attribute as libraries name it: floats have 32 bits, dtypes are names."""
    if kind.startswith("list("):
        return [_plain(kind[5:-1], one) for one in value]
    if kind == "float":
        return struct.unpack("f", struct.pack("f", value))[0]
    if kind == "type":
        return value if isinstance(value, str) else getattr(value, "name", None) or value.__name__
    if kind == "shape":
        return None if value is None else list(value)
    return value
