"""docs/kernels.md, written from the op table and from what the lowerings take.

Not for compiling: each lowering is asked once a dtype, with inputs that it may refuse for any other
reason. TensorFlow is imported, for the declarations of its ops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from composite.compiler import op_traits
from composite.compiler.tvm import table
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.ir.dtypes import DTYPES
from composite.compiler.tvm.ir.tensor import Parameter, Tensor
from composite.compiler.tvm.nodes.node import DTYPE_OF_ENUM, VARIANT, OpNode

_HEAD = """\
# What kernels cover

<!-- Generated from compiler/tvm: pytest --update-golden tests/compiler/tvm/test_page.py -->

Kernels can be compiled from the TensorFlow ops below. A body may also call other ops. With an op
that is not in these tables, or with a dtype, attribute or shape that is excluded here, the
composite op runs its expansion, and `composite.explain` names the reason.

The dtypes are those of the op's data, and TensorFlow's own kernels may take more. *floats* are
float32, float64, float16 and bfloat16; *numbers* are floats, int32 and int64; *all* are numbers,
bool, and the integers of other widths, which are moved, compared and cast alone. 16-bit floats are
computed in float32 and rounded where a tensor is stored, and where a discontinuous op reads it.

Ranks must be known. Dims may vary from call to call, unless a column says otherwise. Sizes, axes,
paddings, permutations and similar operands must be known when the kernel is compiled: they are
constants, or arithmetic on shapes. A size may also be the value of an input that is a scalar, int32
or int64 (`num_segments`, the `n` of `tf.range(n)`), or arithmetic on such values: it varies as a
dim does, and is `= s0` among the kernel's shapes. Where a part of a tensor begins may be data
(`tf.slice(cache, [0, i], [n, 1])`, `x[:, i]`), as long as its size is known.

A While becomes a loop in the kernel if its iterations can be counted beforehand: its condition must
compare a bound with a number to which each iteration adds a constant. There may be several such
conditions that all have to hold, as with `maximum_iterations`. A list of tensors becomes an array,
of which each iteration sets one row.

Of an If or a Case whose condition is a tensor all branches are computed, and the results of one are
selected. They must have one shape, and a branch has no loop, no index that must be checked and no
integer division.

If an index is out of range, or an integer is divided by zero, the kernel stops, and the expansion
runs and raises TensorFlow's error.
"""

_NAMES_OF_SETS = {
    frozenset(DTYPES): "all",
    frozenset(DTYPES) - {"bool"}: "all but bool",
    frozenset({"float32", "float64", "float16", "bfloat16", "int32", "int64"}): "numbers",
    frozenset({"float32", "float64", "float16", "bfloat16"}): "floats",
}
_ENUM_OF_DTYPE = {name: enum for enum, name in DTYPE_OF_ENUM.items()}


def page() -> str:
    """Return the page."""
    parts = [_HEAD]
    for family in table.FAMILIES:
        module = import_module(f".lower.{family}", __package__)
        parts.append(f"## {(module.__doc__ or '').splitlines()[0].rstrip('.')}\n")
        parts.append("| op | dtypes | limits |\n|---|---|---|")
        parts += [
            f"| {op} | {_text(dtypes_of(op))} | {op_traits.of(op).limits} |"
            for op in sorted(table.FAMILIES[family])
        ]
        parts.append("")
    return "\n".join(parts)


def _text(dtypes: Iterable[str]) -> str:
    found = frozenset(dtypes)
    return _NAMES_OF_SETS.get(found) or ", ".join(d for d in DTYPES if d in found)


def dtypes_of(op: str) -> list[str]:
    """Return the dtypes of data for which an op has a lowering."""
    from tensorflow.python.framework import op_def_registry

    declaration = op_def_registry.get(op)
    attr = _data_attr(declaration)
    if attr is None:
        arguments = (*declaration.input_arg, *declaration.output_arg)
        if any(one.type == VARIANT or one.type_list_attr for one in arguments):
            return list(DTYPES)
        fixed = {DTYPE_OF_ENUM.get(arg.type, "") for arg in declaration.input_arg}
        return [d for d in DTYPES if d in fixed]
    allowed = list(attr.allowed_values.list.type)
    return [
        dtype
        for dtype in DTYPES
        if (not allowed or _ENUM_OF_DTYPE[dtype] in allowed)
        and _is_taken(declaration, attr.name, dtype)
    ]


def _data_attr(declaration: Any) -> Any:
    """Return the attribute that is the dtype of an op's data, or None if that is fixed."""
    attrs = {a.name: a for a in declaration.attr if a.type == "type"}
    first = [arg.type_attr for arg in declaration.input_arg] or list(attrs)
    named = (attrs[name] for name in ("T", "element_dtype", "dtype") if name in attrs)
    return next(named, None) or attrs.get(next(iter(first), ""))


def _is_taken(declaration: Any, name: str, dtype: str) -> bool:
    node = _node(declaration, name, dtype)
    inputs = [
        Tensor((4, 4), kind, Parameter(0))
        for arg in declaration.input_arg
        for kind in _kinds(arg, node)
    ]
    lower = table.lowering(declaration.name)
    if lower is None:
        raise ValueError(f"{declaration.name} is not in the op table")
    try:
        lower(OpNode(node), inputs)
    except NotCovered as answer:
        return "dtype" not in str(answer)
    return True


def _node(declaration: Any, name: str, dtype: str) -> Any:
    """Return a node with the op's defaults, and a type for each attribute that has none."""
    from tensorflow.core.framework import node_def_pb2
    from tensorflow.python.framework import tensor_util

    node = node_def_pb2.NodeDef(op=declaration.name, name="probe")
    for attr in declaration.attr:
        if attr.HasField("default_value"):
            node.attr[attr.name].CopyFrom(attr.default_value)
        elif attr.type == "type":
            own, indices = _ENUM_OF_DTYPE[dtype], _ENUM_OF_DTYPE["int32"]
            allowed = attr.allowed_values.list.type or [own]
            if _ENUM_OF_DTYPE["float32"] not in allowed and indices in allowed:
                allowed = [indices]
            node.attr[attr.name].type = own if own in allowed else allowed[0]
        elif attr.type == "tensor":
            node.attr[attr.name].tensor.CopyFrom(
                tensor_util.make_tensor_proto([], _ENUM_OF_DTYPE[dtype])
            )
        elif attr.type == "int":
            node.attr[attr.name].i = 2
    node.attr[name].type = _ENUM_OF_DTYPE[dtype]
    return node


def _kinds(arg: Any, node: Any) -> Sequence[str]:
    """Return the dtype of an argument, once a tensor."""
    enum = node.attr[arg.type_attr].type if arg.type_attr else arg.type
    return [DTYPE_OF_ENUM.get(enum, "int32")] * (2 if arg.number_attr else 1)
