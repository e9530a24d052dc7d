"""What the free names of a body are bound to: in its closure, its module and builtins.

They are looked up when the op is compiled. A captured number is part of the op: assigning to the
module's variable afterwards does not change it.
Not for: names that the body binds (scopes.py), calling what was captured (calls.py).
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import types
from typing import Any

import numpy as np

from composite.compiler.source import Source
from composite.compiler.tfr import constants

MISSING = object()


@dataclasses.dataclass(frozen=True)
class Static:
    """A Python object that is known when the op is compiled: a module, a function, a constant.

    `spelling` is how the source names it: "tf.nn.relu".
    """

    object: Any
    spelling: str


def capture(source: Source, name: str) -> Any:
    """Return what a free name of the function is bound to; MISSING if it is not bound yet."""
    function = source.function
    if name in function.__code__.co_freevars:
        cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:  # a closure variable that is assigned after the decorator has run
            return MISSING
    if name in function.__globals__:
        return function.__globals__[name]
    return getattr(builtins, name, MISSING)


def member(owner: Static, name: str) -> Any:
    """Return an attribute of a module, class or member of an enum; MISSING if there is none."""
    if isinstance(owner.object, (types.ModuleType, type)):
        return getattr(owner.object, name, MISSING)
    if isinstance(owner.object, enum.Enum) and name in ("name", "value"):
        return getattr(owner.object, name)
    return MISSING


def constant(value: object) -> object:
    """Return a captured object in a form that can be a constant of the IR, or a tuple of them.

    Raises:
        constants.NotConstantError: with what to write instead.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is tuple:
        return tuple(constant(element) for element in value)
    _refuse_subclass(value)
    if isinstance(value, (list, dict, set)):
        raise constants.NotConstantError(
            f"a {type(value).__name__} may change after the op is compiled: make it a tuple"
        )
    if isinstance(value, type) and issubclass(value, np.generic):
        return _dtype(value)
    if _is_tensor(value):
        raise constants.NotConstantError(
            "a tensor cannot be a constant of an op: make it an input, or a NumPy array"
        )
    return value


def _refuse_subclass(value: object) -> None:
    """Refuse an object of a class of one's own, whose operators may mean something else."""
    own = type(value).__name__
    if isinstance(value, enum.Enum):
        raise constants.NotConstantError(
            f"a member of the enum {own} is not a constant of an op: write `.value` after it"
        )
    if isinstance(value, np.generic):
        return
    for base in (bool, int, float, str, tuple, np.ndarray):
        if isinstance(value, base) and type(value) is not base:
            plain = "np.asarray" if base is np.ndarray else base.__name__
            raise constants.NotConstantError(
                f"a {own} is a {base.__name__} with operators of its own: convert it at the top of "
                f"the module, with {plain}(...)"
            )


def _dtype(value: type) -> object:
    import tensorflow as tf

    try:
        return tf.as_dtype(value)
    except TypeError:
        message = f"TensorFlow has no dtype for np.{value.__name__}"
        raise constants.NotConstantError(message) from None


def is_variable(value: object) -> bool:
    """Whether a value is a variable, TensorFlow's or Keras', which holds one of TensorFlow."""
    import tensorflow as tf

    return isinstance(getattr(value, "_value", value), tf.Variable)


def _is_tensor(value: object) -> bool:
    import tensorflow as tf

    return tf.is_tensor(value) or isinstance(value, tf.Variable)
