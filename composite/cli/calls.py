"""How commands are told of an op and a call of it: `FILE:OP`, --shape, --dtype, --attr, --value.

Not for: what is done with the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click

from composite.binding import json_text

_UNKNOWN_SIZE = 32  # of a dim with a name, where a number is needed

_OPTIONS = (
    click.option("shapes", "-s", "--shape", metavar="NAME=DIMS", multiple=True,
                 help="Shape of an input: x=32,1024; a name is a dim that varies: x=batch,64; "
                 "n= is a scalar. Once for each tensor of a list."),
    click.option("dtypes", "-d", "--dtype", metavar="[NAME=]DTYPE", multiple=True,
                 help="Dtype of an input, or of all that may have it; float32 by default."),
    click.option("attrs", "-a", "--attr", metavar="NAME=VALUE", multiple=True,
                 help="An attribute: act=RELU, axis=1, widths=[1,2]."),
    click.option("values", "--value", metavar="NAME=JSON", multiple=True,
                 help="The value of an input, where it matters: paddings=[[1,1],[0,0]]."),
)  # fmt: skip


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: the options that state a call, as the parameters of CallOptions."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


device = click.option(
    "--device", metavar="NAME", help="Where the call is placed: CPU:0, GPU:0; where TensorFlow "
    "places it by default.",
)  # fmt: skip


@contextmanager
def placed(name: str | None) -> Iterator[None]:
    """Places what is called inside on a device. BadParameter where TensorFlow has no such."""
    import tensorflow as tf

    known = [found.name.removeprefix("/device:") for found in tf.config.list_logical_devices()]
    if name is not None and name.upper() not in known:
        raise click.BadParameter(f"{name} is none of {', '.join(known)}", param_hint="--device")
    with tf.device(name):
        yield


class CallOptions(NamedTuple):
    """The options as they were given."""

    shapes: Sequence[str] = ()
    dtypes: Sequence[str] = ()
    attrs: Sequence[str] = ()
    values: Sequence[str] = ()

    def stated(self) -> bool:
        """Whether inputs are given."""
        return bool(self.shapes or self.values)


class Target(NamedTuple):
    """`FILE` or `FILE:OP`: a Python file, or the folder of a built library."""

    path: Path
    op: str | None

    def ops(self) -> list[Any]:
        """The op that is named, or all of the file. LookupError when there is none of the name."""
        from composite.aot import sources
        from composite.aot.loading import load

        if not self.path.exists():
            raise FileNotFoundError(f"there is no file {self.path}")
        is_library = self.path.is_dir()
        found = list(load(self.path).ops.values()) if is_library else sources.find(self.path).ops
        return found if self.op is None else [sources.named(found, self.op)]

    def one(self) -> Any:
        """The op that is named, or the only one. UsageError when it is not clear which."""
        found = self.ops()
        if len(found) > 1:
            names = ", ".join(op.__name__ for op in found)
            raise click.UsageError(f"say which op: {self.path}:NAME, one of {names}")
        return found[0]


class TargetType(click.ParamType):
    """Parses `FILE[:OP]`."""

    name = "FILE[:OP]"

    def convert(self, value: Any, param: Any, ctx: Any) -> Target:  # noqa: ARG002 - click's
        """A name of a file that exists is that file, whatever colons it has."""
        if isinstance(value, Target):
            return value
        file, colon, op = value.rpartition(":")
        if not colon or Path(value).exists():
            return Target(Path(value), None)
        return Target(Path(file), op or None)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[Any]:  # noqa: ARG002
        """Files; the op's name is the user's."""
        return [click.shell_completion.CompletionItem(incomplete, type="file")]


def arguments(op: Any, given: CallOptions) -> dict[str, Any]:
    """A call as `CompositeOp.add_signature` takes it: from the options, or stated beside the op.

    UsageError says what is missing or does not belong to the op.
    """
    attrs = attributes(op, given.attrs)
    for text in given.dtypes:  # of an input that has no choice, too
        _parsed(text.rpartition("=")[2])
    values = _values(op, given)
    shapes = _shapes(op, given.shapes)
    for arg in op.schema.inputs:
        if arg.is_list and given.stated() and arg.name not in values:
            shapes.setdefault(arg.name, [])  # a list of no tensors
    missing = [arg.name for arg in op.schema.inputs if arg.name not in {*shapes, *values}]
    if missing and not given.stated() and op.signatures:
        return {**op.signatures[0], **attrs}
    if missing:
        options = " ".join(f"--shape {name}=..." for name in missing)
        raise click.UsageError(f"state the shapes of {op.__name__}'s inputs: {options}")
    call: dict[str, Any] = {}
    for arg in op.schema.inputs:
        dtype = _dtype(op, arg, given.dtypes)
        if arg.name in values:
            dims = [_dims_of(values[arg.name], is_list=arg.is_list)]
            dims = dims[0] if arg.is_list else dims
        else:
            dims = shapes[arg.name]
        specs = [(dtype, one) for one in dims]
        if len(specs) > 1 and not arg.is_list:
            raise click.UsageError(f"{arg.name} is one tensor, and {len(specs)} shapes are given")
        call[arg.name] = specs if arg.is_list else specs[0]
    return {**call, **attrs}


def tensors(op: Any, given: CallOptions) -> tuple[list[Any], dict[str, Any]]:
    """Inputs of a call, random but for the values that are given, and its attributes."""
    import numpy as np

    call, values = arguments(op, given), _values(op, given)
    random = np.random.default_rng(0)
    inputs = []
    for arg in op.schema.inputs:
        specs, value = call.pop(arg.name), values.get(arg.name)
        if not arg.is_list:
            inputs.append(_tensor(specs, value, random))
            continue
        each = [None] * len(specs) if value is None else value
        inputs.append([_tensor(s, v, random) for s, v in zip(specs, each, strict=True)])
    return inputs, call


def _tensor(spec: Any, value: Any, random: Any) -> Any:
    import tensorflow as tf

    if isinstance(spec, tf.TensorSpec):
        spec = (spec.dtype, spec.shape.as_list())
    dtype, dims = tf.as_dtype(spec[0]), spec[1]
    if value is not None:
        return tf.constant(value, dtype)
    shape = [d if isinstance(d, int) else _UNKNOWN_SIZE for d in dims]
    if dtype.is_floating or dtype.is_complex:
        return tf.cast(random.standard_normal(shape), dtype)
    if dtype == tf.bool:
        return tf.constant(random.integers(0, 2, shape).astype(bool))
    if dtype == tf.string:
        return tf.fill(shape, "text")
    return tf.zeros(shape, dtype)  # as an index it is within any bound


def _pairs(texts: Sequence[str], known: Sequence[str], what: str) -> list[tuple[str, str]]:
    pairs = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--{what} {text}: write it as NAME=VALUE")
        if name not in known:
            raise click.UsageError(f"--{what} {text}: there is no {name!r}; {', '.join(known)}")
        pairs.append((name, value))
    return pairs


def _shapes(op: Any, texts: Sequence[str]) -> dict[str, list[Any]]:
    shapes: dict[str, list[Any]] = {}
    for name, text in _pairs(texts, [arg.name for arg in op.schema.inputs], "shape"):
        dims = [part.strip() for part in text.split(",")] if text else []
        for dim in dims:
            if not (dim.isdigit() or dim.isidentifier()):
                raise click.UsageError(f"--shape {name}={text}: {dim!r} is no number and no name")
        shapes.setdefault(name, []).append(tuple(int(d) if d.isdigit() else d for d in dims))
    return shapes


def _values(op: Any, given: CallOptions) -> dict[str, Any]:
    names = [arg.name for arg in op.schema.inputs]
    return {
        name: _json(f"--value {name}", text) for name, text in _pairs(given.values, names, "value")
    }


def _dims_of(value: Any, *, is_list: bool) -> Any:
    import numpy as np

    return [np.shape(one) for one in value] if is_list else np.shape(value)


def _dtype(op: Any, arg: Any, texts: Sequence[str]) -> str:
    """The dtype of an input: as stated for it, for all, or float32 where the op allows it."""
    import tensorflow as tf

    if arg.dtype:
        return str(tf.as_dtype(arg.dtype).name)
    allowed = next((a.allowed for a in op.schema.derived if a.name == arg.type_attr), ())
    for text in texts:
        name, equals, dtype = text.rpartition("=")
        if name == arg.name or (not equals and (not allowed or _parsed(text) in allowed)):
            return str(_parsed(dtype).name)
    if not allowed or tf.float32 in allowed:
        return "float32"
    return str(allowed[0].name)


def _parsed(text: str) -> Any:
    import tensorflow as tf

    try:
        return tf.as_dtype(text)
    except TypeError as error:
        raise click.UsageError(f"--dtype {text}: there is no dtype {text!r}") from error


def attributes(op: Any, texts: Sequence[str]) -> dict[str, Any]:
    """The attributes that are given, as the op takes them."""
    specs = {spec.name: spec for spec in op.schema.attrs}
    return {name: _attribute(specs[name], text) for name, text in _pairs(texts, [*specs], "attr")}


def _attribute(spec: Any, text: str) -> Any:
    """The value of an attribute: as itself where its type says so, else as JSON."""
    import tensorflow as tf

    if spec.type == "string":
        return text
    if spec.type == "type":
        return _parsed(text)
    if spec.type == "shape":
        return tf.TensorShape([int(d) if d.isdigit() else None for d in text.split(",") if d])
    value = _json(f"--attr {spec.name}", text)
    if spec.type == "list(type)":
        return [_parsed(one) for one in value]
    return tf.make_tensor_proto(value) if spec.type == "tensor" else value


def _json(what: str, text: str) -> Any:
    try:
        return json_text.parsed(text)
    except ValueError as error:
        raise click.UsageError(f"{what}={text}: {error}") from error


def plain_call(call: Mapping[str, Any]) -> str:
    """A call in a line, for people."""
    parts = []
    for name, value in call.items():
        specs = value if isinstance(value, list) else [value]
        if all(isinstance(one, tuple) for one in specs) and specs:
            shown = [f"{dtype}[{', '.join(map(str, dims))}]" for dtype, dims in specs]
            parts.append(f"{name}={shown[0] if value is not specs else shown}")
        else:
            parts.append(f"{name}={value}")
    return ", ".join(parts)
