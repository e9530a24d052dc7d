"""Which function of the library stands for which names of TensorFlow.

Not for: the functions themselves.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Entry:
    """A function of the library and TensorFlow's names for it: "tf.matmul", "tf.linalg.matmul".

    `rest` is the parameter whose list TensorFlow takes as arguments: tf.meshgrid(x, y). `gives` is
    the class whose object TensorFlow gives, "tf.TensorArray": here that is [value, fixed], as its
    methods, "tf.TensorArray.read", take it for `self`; one that changes the value alone, a tensor,
    may give just that.
    """

    names: tuple[str, ...]
    function: Callable[..., Any]
    rest: str = ""
    gives: str = ""

    def objects(self) -> list[Any]:
        """Return TensorFlow's objects of these names; AttributeError if one does not exist."""
        return [_object(name) for name in self.names]

    def class_given(self) -> type | None:
        """Return the class of `gives`."""
        return _object(self.gives) if self.gives else None


def _object(name: str) -> Any:
    import tensorflow as tf

    return functools.reduce(getattr, name.split(".")[1:], tf)


PUBLIC: list[Entry] = []


def public(*names: str, rest: str = "", gives: str = "") -> Callable[[_Function], _Function]:
    """Decorator: the function is what these names of TensorFlow mean in a body."""

    def register(function: _Function) -> _Function:
        PUBLIC.append(Entry(names, function, rest, gives))
        return function

    return register
