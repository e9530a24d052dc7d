"""TensorFlow's own ops, as its Python objects name them.

A callable is one op when TensorFlow generated it: `tf.raw_ops.MatMul`, `gen_math_ops.mat_mul`,
public names such as `tf.nn.relu` that point at one, the functions of tf.load_op_library. The
wrappers of one op share a code object, which names the op among its constants; their module has the
raw one under that name. Everything else in `tf.*` is Python that may do more than one op.

Reaches into TensorFlow 2.21: op_def_registry, tf_decorator, and the generated wrappers' habits of
sharing their code and of naming OpDef arguments anew in the same order.
tests/compiler/frontend/test_tf_ops.py holds them against the installed version, and against the
public names that TensorFlow exports.

Not for: checking a call (calls.py).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from typing import Any

from composite.compiler import op_traits
from composite.compiler.schema import AttrSpec, OpSchema, same_default


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of a generated wrapper: its Python name, the OpDef's name, Python's default.

    `differs`: Python's default is not the OpDef's, so a call that leaves it out must pass it.
    """

    name: str
    op_name: str
    default: Any = inspect.Parameter.empty
    differs: bool = False

    @property
    def required(self) -> bool:
        """Whether a call must give it."""
        return self.default is inspect.Parameter.empty


@dataclasses.dataclass(frozen=True)
class TfOp:
    """A TensorFlow op and how Python calls it."""

    schema: OpSchema
    parameters: tuple[Parameter, ...]
    keyword_only: bool

    @property
    def name(self) -> str:
        """The op's name in TensorFlow."""
        return self.schema.op_name


def find(function: object) -> TfOp | None:
    """Return the op that a callable of TensorFlow calls; None if it is not exactly one."""
    # An object that is not a function may not be hashable. TensorFlow's decorators give functions.
    return _find(function) if isinstance(function, types.FunctionType) else _search(function)


def _search(function: object) -> TfOp | None:
    wrapped = _unwrap(function)
    if not isinstance(wrapped, types.FunctionType):
        return None
    name = _op_name(wrapped)
    return None if name is None else _describe(name, wrapped, _raw(wrapped, name) is function)


# Bounded, because a cache of functions keeps them alive.
_find = functools.lru_cache(maxsize=1024)(_search)


def is_tensorflow(function: object) -> bool:
    """Say whether a callable is TensorFlow's (or Keras's) own."""
    module = getattr(_unwrap(function), "__module__", None) or ""
    return module.split(".")[0] in ("tensorflow", "keras", "tf_keras")


def has_custom_gradient(function: object) -> bool:
    """Say whether a function is what tf.custom_gradient makes of one."""
    return type(function).__module__ == "tensorflow.python.ops.custom_gradient"


def is_random(function: object) -> bool:
    """Say whether a Python function of TensorFlow draws random numbers from a state of its own."""
    wrapped = _unwrap(function)
    name = getattr(wrapped, "__name__", "")
    module = getattr(wrapped, "__module__", None) or ""
    if "stateless" in f"{module}.{name}":
        return False
    draws = ("dropout", "sampler", "sampled", "fractional")
    return (
        module.endswith("random_ops")
        or any(word in name for word in draws)
        or (name.startswith("random_") and find(function) is None)
    )


def public_twin(function: object) -> str | None:
    """Return the public function that does the same from a seed: "tf.random.stateless_normal"."""
    import tensorflow as tf

    name = getattr(_unwrap(function), "__name__", "").removeprefix("random_").removesuffix("_v2")
    if "dropout" in name:
        return "tf.nn.experimental.stateless_dropout"
    if name == "shuffle":
        return "tf.random.experimental.stateless_shuffle"
    twin = f"stateless_{name}"
    return f"tf.random.{twin}" if hasattr(tf.random, twin) else None


def nearest_raw_op(name: str) -> str | None:
    """Return the raw op that a Python name suggests: "reduce_sum" -> "Sum"."""
    for candidate in (name, name.removeprefix("reduce_")):
        flat = candidate.replace("_", "").lower()
        for suffix in ("v3", "v2", ""):
            if found := _flat_names().get(flat + suffix):
                return found
    return None


def random_advice(schema: OpSchema) -> str | None:
    """Return what to write instead of a random op that keeps state; None for any other op."""
    name = schema.op_name
    if twin := op_traits.of(name).stateless_twin:
        return f"tf.raw_ops.{twin} with a `seed` input of the composite"
    attrs = {attr.name for attr in schema.attrs}
    if schema.is_stateful and {"seed", "seed2"} <= attrs:
        return "the random values as an input of the composite"
    return None


def _op_name(wrapper: types.FunctionType) -> str | None:
    """Return the op that a function is generated for, None if it is not."""
    from tensorflow.python.framework import op_def_registry

    code = wrapper.__code__
    if "_ctx" not in code.co_varnames:  # the eager context, which every generated wrapper asks for
        return None
    for constant in code.co_consts:
        if not isinstance(constant, str) or constant not in wrapper.__globals__:
            continue
        if getattr(_unwrap(_raw(wrapper, constant)), "__code__", None) is code:
            return constant if op_def_registry.get(constant) is not None else None
    return None


def _raw(wrapper: types.FunctionType, op_name: str) -> object:
    """Return what the module of a wrapper has under the name of an op: tf.raw_ops.<op_name>."""
    return wrapper.__globals__[op_name]


@functools.cache
def _flat_names() -> dict[str, str]:
    import tensorflow as tf

    return {name.lower(): name for name in dir(tf.raw_ops) if not name.startswith("_")}


def _unwrap(function: object) -> Any:
    from tensorflow.python.util import tf_decorator

    if not callable(function):
        return function
    return tf_decorator.unwrap(function)[1]


@functools.cache
def _describe(name: str, wrapper: types.FunctionType, keyword_only: bool) -> TfOp:
    from tensorflow.python.framework import op_def_registry

    schema = OpSchema.from_op_def(op_def_registry.get(name))
    signature = inspect.signature(wrapper)
    given = [one for one in signature.parameters.values() if one.name != "name"]
    op_names = _op_names([one.name for one in given], schema.parameters)
    parameters = tuple(
        Parameter(
            one.name, op_names[one.name], one.default, _differs(schema, op_names[one.name], one)
        )
        for one in given
    )
    return TfOp(schema, parameters, keyword_only)


def _differs(schema: OpSchema, op_name: str, parameter: inspect.Parameter) -> bool:
    spec = schema.input_or_attr(op_name)
    # A wrapper takes None for "the OpDef's default".
    if not isinstance(spec, AttrSpec) or parameter.default in (None, inspect.Parameter.empty):
        return False
    return not (spec.has_default and same_default(spec, parameter.default))


def _op_names(python: list[str], declared: tuple[str, ...]) -> dict[str, str]:
    """Match Python's names with the OpDef's: the renamed ones are left over, in the same order.

    >>> _op_names(["input", "axis", "keep_dims"], ("input", "reduction_indices", "keep_dims"))
    {'input': 'input', 'axis': 'reduction_indices', 'keep_dims': 'keep_dims'}
    """
    left_over = iter([name for name in declared if name not in python])
    return {name: name if name in declared else next(left_over) for name in python}
