"""Stated calls of an op as the requests that the runtime makes for kernels of such calls.

A stated call gives each input as a tf.TensorSpec or a pair (dtype, dims); a triple with "constant"
is an input that is the same in every call.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import tensorflow as tf

from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.binding.records import python_value
from composite.binding.typed_record import Dims, TypedRecord
from composite.kernels import shapes
from composite.ops import call_arguments
from composite.ops.op import CompositeOp

_SIZE = 32  # of a dim that varies, for measuring
_FEWEST_ELEMENTS = 256  # kFewestElements of constant_inputs.cc


class Spec(NamedTuple):
    """One input of a stated call. `constant`: it is the same in every call."""

    dtype: tf.DType
    dims: tuple[int | str | None, ...]
    constant: bool = False

    def known(self) -> list[int | None]:
        """The dims as TensorFlow has them: a size or None."""
        return [d if isinstance(d, int) else None for d in self.dims]


def described_shapes(wanted: KernelRequest | KernelRecord) -> str:
    """The shapes of a request or a kernel, for people."""
    found = []
    for i, dims in enumerate(wanted.in_shapes):
        sizes = "x".join(map(str, dims)) or "scalar"
        sizes = f"size {sizes}" if i in wanted.size_inputs else sizes
        found.append(f"constant {sizes}" if i in wanted.constants else sizes)
    return ", ".join(found)


def described_attributes(wanted: TypedRecord) -> str:
    """The attributes of a request or a kernel, for people."""
    attrs = {name: python_value(value) for name, value in sorted(wanted.attrs.items())}
    return ", ".join(f"{n}={getattr(v, 'name', v)!s}" for n, v in attrs.items())


def described(wanted: KernelRequest) -> str:
    """The shapes and attributes of a request, for people."""
    return "; ".join(filter(None, (described_shapes(wanted), described_attributes(wanted))))


def request(op: CompositeOp, arguments: Mapping[str, Any]) -> KernelRequest:
    """A stated call as a request: its attributes, and shapes whose varying dims are symbols."""
    return requests(op, arguments)[0]


def requests(
    op: CompositeOp, arguments: Mapping[str, Any], device: str = ""
) -> list[KernelRequest]:
    """The requests of a stated call: for any inputs, and for constants where some are stated.

    No kernel for a GPU takes inputs for constant. TypeError or ValueError for a call that is none.
    """
    given = dict(op.__signature__.bind(**arguments).arguments)
    given.pop("name", None)
    specs: list[Spec] = []
    with tf.Graph().as_default():
        for arg in op.schema.inputs:
            value = given[arg.name]
            own = [_spec(arg.name, v) for v in (value if arg.is_list else [value])]
            specs += own
            holders = [tf.compat.v1.placeholder(s.dtype, s.known()) for s in own]
            given[arg.name] = holders if arg.is_list else holders[0]
        attrs = call_arguments.bind(op.op_def, given).attrs
    in_shapes = _with_symbols(specs)
    hint = (_SIZE,) * len(shapes.symbols(in_shapes))
    plain = KernelRequest(
        op=op.op_name,
        attrs=attrs,
        program=op.digest,
        in_shapes=in_shapes,
        hint=hint,
        device=device,
    )
    constants = tuple(i for i, spec in enumerate(specs) if _is_packed(spec) and not device)
    return [plain, replace(plain, constants=constants)] if constants else [plain]


def names(op: CompositeOp, arguments: Mapping[str, Any]) -> dict[str, str]:
    """What kernel records call the tensors and the varying dims of a stated call, by their names.

    Of the tensors of a list, "x[0]" is the name. ValueError if a name has two meanings.
    """
    given = dict(op.__signature__.bind(**arguments).arguments)
    tensors = []
    specs: list[Spec] = []
    for arg in op.schema.inputs:
        values = given[arg.name] if arg.is_list else [given[arg.name]]
        specs += [_spec(arg.name, value) for value in values]
        tensors += [f"{arg.name}[{i}]" for i in range(len(values))] if arg.is_list else [arg.name]
    found = {name: f"in{i}" for i, name in enumerate(tensors)}
    outputs = {arg.name: f"out{i}" for i, arg in enumerate(op.schema.outputs)}
    dims = [dim for spec in specs for dim in spec.dims]
    symbols = [dim for shape in _with_symbols(specs) for dim in shape]
    sizes = {dim: str(s) for dim, s in zip(dims, symbols, strict=True) if isinstance(dim, str)}
    for more in (outputs, sizes):
        if twice := found.keys() & more:
            raise ValueError(f"{min(twice)} names two of the tensors and dims of {op.__name__}")
        found |= more
    return found


def of_one(request: KernelRequest) -> list[KernelRequest]:
    """A request with 1 in the place of each symbol that a batch or a sequence would be, and of all.

    They are dims of the first input, but for its last.
    """
    symbols = shapes.symbols([request.in_shapes[0][:-1]])
    bound = [{symbol} for symbol in symbols] + ([set(symbols)] if len(symbols) > 1 else [])
    return [_with_ones(request, ones) for ones in bound]


def _with_ones(request: KernelRequest, ones: set[str]) -> KernelRequest:
    left = [symbol for symbol in shapes.symbols(request.in_shapes) if symbol not in ones]
    dims: dict[int | str, int | str] = dict.fromkeys(ones, 1)
    dims |= {symbol: f"s{i}" for i, symbol in enumerate(left)}
    in_shapes = tuple(tuple(dims.get(d, d) for d in shape) for shape in request.in_shapes)
    return replace(request, in_shapes=in_shapes, hint=request.hint[: len(left)])


def _is_packed(spec: Spec) -> bool:
    """Whether the runtime looks for kernels that pack it (constant_inputs.cc)."""
    sizes = [d for d in spec.dims if isinstance(d, int)]
    return (
        spec.constant
        and spec.dtype.is_floating
        and len(sizes) == len(spec.dims) >= 2
        and math.prod(sizes) >= _FEWEST_ELEMENTS
    )


def _spec(name: str, value: Any) -> Spec:
    if isinstance(value, tf.TensorSpec):
        if value.shape.rank is None:
            raise ValueError(f"the signature's {name} needs a rank")
        return Spec(value.dtype, tuple(value.shape.as_list()))
    try:
        dtype, dims, *constant = value
        spec = Spec(tf.as_dtype(dtype), tuple(dims), bool(constant))
    except (TypeError, ValueError) as error:
        raise TypeError(_no_spec(name, value)) from error
    if constant not in ([], ["constant"]):
        raise TypeError(_no_spec(name, value))
    return spec


def _no_spec(name: str, value: Any) -> str:
    return (
        f"the signature's {name} must be a tf.TensorSpec, (dtype, dims) or "
        f'(dtype, dims, "constant"), not {value!r}'
    )


def _with_symbols(specs: list[Spec]) -> tuple[Dims, ...]:
    symbols: dict[Any, str] = {}

    def dim(given: int | str | None, own: tuple[int, int]) -> int | str:
        if isinstance(given, int):
            return given
        return symbols.setdefault(given or own, f"s{len(symbols)}")  # without a name: like no other

    return tuple(
        tuple(dim(given, (position, axis)) for axis, given in enumerate(spec.dims))
        for position, spec in enumerate(specs)
    )
