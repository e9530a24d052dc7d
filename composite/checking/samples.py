"""Samples of calls: drawn from an op's declaration, or made from a call that was given.

Drawing is hypothesis': it makes a sample that shows a difference smaller. A sample is drawn as
sizes, a seed and a list of special values, which is what can be made smaller.

Not for: running them (ways.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from composite.checking import shape_search, templates, variables
from composite.checking.oracle import Case
from composite.checking.sample import Array, Sample, as_declared
from composite.compiler.schema import ArgSpec, AttrSpec, OpSchema
from composite.ops.op import DecoratedOp
from composite.reference import floats

_SPECIALS = ("NaN", "infinity", "-infinity", "denormal", "-0.0", "0.0")
_SIZES = (1, 2, 3, 5, 0, 4, 8, 17, 33)  # the first ones are what hypothesis calls small
_DTYPES = (tf.float32, tf.float64, tf.int32, tf.int64, tf.bool)
_RESOURCE = tf.resource.as_datatype_enum
_MOST = 3  # tensors in a list
_FIRST = 60  # candidates of which one has to fit, or shapes are searched for


def given(
    op: DecoratedOp, inputs: Sequence[Any], attrs: Mapping[str, Any]
) -> Sequence[Callable[[], Sample]]:
    """The call that was given, then variations of it: dtypes, special values, empty, 0-d.

    Each is made when it is called for.
    """
    first = Sample(
        tuple(
            [_array(arg, x) for x in value] if arg.is_list else _array(arg, value)
            for arg, value in zip(op.schema.inputs, inputs, strict=True)
        ),
        attrs,
        "as given",
        _variables(op.schema),
    )
    changes: list[tuple[str, Callable[[Array], Array]]] = []
    for dtype in _other_dtypes(op.schema, first):
        changes.append((f"in {dtype.name}", functools.partial(_converted, dtype=dtype)))
    floats = any(tf.as_dtype(x.dtype).is_floating for x in first.arrays())
    for name in _SPECIALS[:4] if floats else ():
        random = np.random.default_rng(0)
        changes.append((f"with {name}", functools.partial(_with, names=[name], random=random)))
    sizes = sorted({d for x in first.arrays() for d in x.shape})
    for size in sizes:
        changes.append((f"dims of {size} empty", functools.partial(_emptied, size=size)))
    if sizes:
        changes.append(("0-d", lambda x: x.reshape(-1)[0] if x.size else x.reshape(-1).sum()))
    return [lambda: first, *(functools.partial(first.replaced, *change) for change in changes)]


def _variables(schema: OpSchema) -> frozenset[int]:
    """The positions of the inputs that are variables."""
    return frozenset(
        position for position, arg in enumerate(schema.inputs) if arg.dtype == _RESOURCE
    )


def _array(arg: ArgSpec, value: Any) -> Array:
    if arg.dtype == _RESOURCE:
        return variables.contents(arg.name, value)
    dtype = tf.as_dtype(arg.dtype) if arg.dtype else None
    tensor = tf.convert_to_tensor(value, dtype=dtype)
    return np.asarray(tensor.numpy())


def _other_dtypes(schema: OpSchema, sample: Sample) -> list[tf.DType]:
    """What else a call's floating inputs may be, if one attribute is the type of all of them."""
    present = {tf.as_dtype(x.dtype) for x in sample.arrays() if tf.as_dtype(x.dtype).is_floating}
    types = [attr for attr in schema.derived if attr.type == "type"]
    if len(present) != 1 or len(types) != 1:
        return []
    allowed = types[0].allowed or (tf.float32, tf.float64)
    return [one for one in allowed if one.is_floating and one not in present]


def _converted(array: Array, dtype: tf.DType) -> Array:
    is_floating = tf.as_dtype(array.dtype).is_floating
    return array.astype(dtype.as_numpy_dtype) if is_floating else array


def _emptied(array: Array, size: int) -> Array:
    return np.zeros([0 if d == size else d for d in array.shape], array.dtype)


def _with(array: Array, names: Sequence[str], random: np.random.Generator) -> Array:
    """A copy with special values in a few places."""
    dtype = tf.as_dtype(array.dtype)
    if not dtype.is_floating or not array.size:
        return array
    copy = array.copy()
    tiny = floats.smallest_normal(array.dtype)
    values = {"NaN": np.nan, "infinity": np.inf, "-infinity": -np.inf, "denormal": tiny / 4}
    for name in names:
        copy.reshape(-1)[random.integers(0, array.size)] = values.get(name, -0.0)
    return copy


class Drawn:
    """Samples of one op, by hypothesis; `attrs` holds attributes that are fixed."""

    def __init__(self, op: DecoratedOp, attrs: Mapping[str, Any], seed: int) -> None:
        self._op = op
        self._fixed = attrs
        self._random = np.random.default_rng(seed)
        self._templates: dict[tuple[int, ...], list[templates.Template]] = {}

    def strategy(self) -> Any:
        """A hypothesis strategy of samples."""
        from hypothesis import strategies as st

        return st.composite(self._draw)()

    def _draw(self, draw: Any) -> Sample:
        from hypothesis import strategies as st

        schema = self._op.schema
        attrs = {a.name: self._attr(draw, a) for a in schema.attrs}
        chosen = {a.name: self._derived(draw, a) for a in schema.derived}
        dtypes = [self._dtypes(arg, chosen) for arg in schema.inputs]
        shapes = self._shapes(draw, dtypes, attrs)
        seed = draw(st.integers(0, 255))
        specials = draw(st.lists(st.sampled_from(_SPECIALS), max_size=3))
        random = np.random.default_rng(seed)
        flat = [
            _with(_values(dtype, shape, random), specials, random)
            for dtype, shape in zip([d for ds in dtypes for d in ds], shapes, strict=True)
        ]
        label = f"seed {seed}" + (f", with {' and '.join(specials)}" if specials else "")
        return Sample(_structured(schema, dtypes, flat), attrs, label, _variables(schema))

    def _attr(self, draw: Any, spec: AttrSpec) -> Any:
        if spec.name in self._fixed:
            return self._fixed[spec.name]
        return as_declared(spec, draw(_attr_strategy(spec)))

    def _derived(self, draw: Any, spec: AttrSpec) -> Any:
        from hypothesis import strategies as st

        if spec.type == "int":
            least = spec.minimum or 0
            return draw(st.integers(least, max(least, _MOST)))
        dtype = st.sampled_from(spec.allowed or _DTYPES)
        if spec.type == "list(type)":
            return draw(st.lists(dtype, min_size=spec.minimum or 0, max_size=_MOST))
        return draw(dtype)

    def _dtypes(self, arg: ArgSpec, chosen: Mapping[str, Any]) -> list[tf.DType]:
        if arg.type_list_attr:
            return list(chosen[arg.type_list_attr])
        one = chosen[arg.type_attr] if arg.type_attr else tf.as_dtype(arg.dtype)
        if one == tf.resource:
            one = self._held(chosen)
        return [one] * (chosen[arg.number_attr] if arg.number_attr else 1)

    def _held(self, chosen: Mapping[str, Any]) -> tf.DType:
        """The dtype of what variables hold: that of a tensor beside them, float32 without one."""
        beside = [value for value in chosen.values() if isinstance(value, tf.DType)]
        fixed = [arg.dtype for arg in self._op.schema.inputs if arg.dtype not in (0, _RESOURCE)]
        return tf.as_dtype([*beside, *fixed, tf.float32][0])

    def _shapes(
        self, draw: Any, dtypes: Sequence[Sequence[tf.DType]], attrs: Mapping[str, Any]
    ) -> list[tuple[int, ...]]:
        from hypothesis import strategies as st

        count = sum(map(len, dtypes))
        known = self._known(dtypes, attrs)
        size = st.sampled_from(_SIZES)
        if not known or draw(st.integers(0, 9)) == 9:
            one = st.lists(size, max_size=3).map(tuple)
            return list(draw(st.tuples(*[one] * count)))
        sizes = [draw(size) for _ in range(max(map(templates.symbols, known)))]
        return list(templates.shapes_of(draw(st.sampled_from(known)), sizes))

    def _known(
        self, dtypes: Sequence[Sequence[tf.DType]], attrs: Mapping[str, Any]
    ) -> list[templates.Template]:
        """The templates that the Python function takes, for so many tensors in each input."""
        key = tuple(map(len, dtypes))
        if key not in self._templates:
            self._templates[key] = self._found(dtypes, attrs)
        return self._templates[key]

    def _found(
        self, dtypes: Sequence[Sequence[tf.DType]], attrs: Mapping[str, Any]
    ) -> list[templates.Template]:
        flat = [d for ds in dtypes for d in ds]

        def case(shapes: templates.Shapes) -> Case:
            arrays = [_values(d, s, self._random) for d, s in zip(flat, shapes, strict=True)]
            schema = self._op.schema
            inputs = _structured(schema, dtypes, arrays)
            return Case(self._op, Sample(inputs, attrs, variables=_variables(schema)))

        def accepts(shapes: templates.Shapes) -> bool:
            return case(shapes).expected.error is None

        candidates = templates.candidates(len(flat), self._random)
        if _variables(self._op.schema):
            return templates.find(candidates, accepts)
        found = templates.find(candidates, accepts, unless_none_of=_FIRST)
        if found:
            return found
        scalars = case(((),) * len(flat))

        def progress(shapes: templates.Shapes) -> shape_search.Progress:
            return shape_search.traced(
                lambda *tensors: scalars.python(scalars.sample.rebuilt(tensors)), flat, shapes
            )

        shapes = shape_search.search(len(flat), progress, accepts, self._random)
        if shapes is None:
            return templates.find(candidates, accepts)
        return [templates.generalized(shapes, accepts)]


def _structured(
    schema: OpSchema, dtypes: Sequence[Sequence[tf.DType]], flat: Sequence[Array]
) -> tuple[Any, ...]:
    values = iter(flat)
    taken = [[next(values) for _ in one] for one in dtypes]
    return tuple(
        arrays if arg.is_list else arrays[0]
        for arg, arrays in zip(schema.inputs, taken, strict=True)
    )


def _values(dtype: tf.DType, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    if dtype.is_bool:
        return np.asarray(random.integers(0, 2, shape)).astype(bool)
    if dtype.is_integer:  # small: they may be axes, indices or counts
        return np.asarray(random.integers(0 if dtype.is_unsigned else -2, 5, shape)).astype(
            dtype.as_numpy_dtype
        )
    if dtype == tf.string:
        return np.asarray(random.choice([b"", b"a", b"\xc3\xa9"], shape), dtype=object)
    if dtype.is_complex:
        parts = random.standard_normal(shape), random.standard_normal(shape)
        return np.asarray(parts[0] + 1j * parts[1]).astype(dtype.as_numpy_dtype)
    if dtype.is_floating:
        return np.asarray(random.standard_normal(shape)).astype(dtype.as_numpy_dtype)
    raise TypeError(f"composite.check cannot draw tensors of {dtype.name}; give it inputs")


def _attr_strategy(spec: AttrSpec) -> Any:
    """Values of an attribute, its default among them."""
    from hypothesis import strategies as st

    kind = spec.type.removeprefix("list(").removesuffix(")")
    is_list = kind != spec.type
    if spec.allowed:
        one = st.sampled_from(spec.allowed)
    elif kind == "int":
        least = -3 if is_list or spec.minimum is None else spec.minimum
        one = st.integers(least, max(least, 0) + 4)
    elif kind == "float":
        one = st.sampled_from([0.0, 1.0, -1.5, 0.1, 3.0])
    elif kind == "bool":
        one = st.booleans()
    elif kind == "string":
        one = st.sampled_from(["", "a", "é", "valid"])
    elif kind == "type":
        one = st.sampled_from(_DTYPES)
    elif kind == "shape":
        one = st.lists(st.integers(0, 3), max_size=3).map(tf.TensorShape)
    else:
        raise TypeError(
            f"composite.check cannot draw the attribute {spec.name} of type {spec.type}; give it"
        )
    if is_list:
        least = spec.minimum or 0
        one = st.lists(one, min_size=least, max_size=max(least, _MOST))
    return st.one_of(st.just(spec.default), one) if spec.has_default else one
