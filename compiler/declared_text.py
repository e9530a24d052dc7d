"""The declaration of an op as its author writes it, for signatures, help and stubs.

Not for: what it says (schema.py), values as Python source (emit/literals.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from composite.compiler.schema import ArgSpec, AttrSpec, OpSchema


def written(attr: AttrSpec) -> Any:
    """Return the default of an attribute as it was written: 0.1 where float32 has 0.100000001."""
    if attr.type == "float" and attr.has_default:
        return _shortest(attr.default)
    if attr.type == "list(float)" and attr.has_default:
        return [_shortest(one) for one in attr.default]
    return attr.default


def _shortest(number: float) -> float:
    import numpy as np

    return float(str(np.float32(number)))


def argument(schema: OpSchema, arg: ArgSpec) -> str:
    """Return the type of an input or output, with the dtypes that it may have.

    "T in {float, double}", "N * T in {float, double}", "int32".
    """
    name = arg.type_attr or arg.type_list_attr
    if not name:
        kind = _dtype(arg.dtype)
    else:
        spec = schema.input_or_attr(name)
        allowed = spec.allowed if isinstance(spec, AttrSpec) else ()
        kind = f"{name} in {_choices(allowed)}" if allowed else name
    return f"{arg.number_attr} * {kind}" if arg.number_attr else kind


def attribute(attr: AttrSpec) -> str:
    """Return an attribute as in a declaration: "act: {'', 'RELU'} = ''", "k: int >= 1"."""
    kind = _choices(attr.allowed) if attr.allowed else attr.type
    if attr.allowed and attr.type.startswith("list("):
        kind = f"list({kind})"
    least = "" if attr.minimum is None else f" >= {attr.minimum}"
    default = f" = {_value(written(attr))}" if attr.has_default else ""
    return f"{attr.name}: {kind}{least}{default}"


def _choices(values: Sequence[Any]) -> str:
    return f"{{{', '.join(map(_value, values))}}}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if type(value).__name__ == "DType":
        return _dtype(value.as_datatype_enum)
    if type(value).__name__ == "TensorShape":
        return str(value)
    return repr(value)


def _dtype(number: int) -> str:
    from tensorflow.core.framework import types_pb2

    return types_pb2.DataType.Name(number).removeprefix("DT_").lower()


_ANNOTATIONS: dict[str, Any] = {"string": str, "int": int, "float": float, "bool": bool}


def types(schema: OpSchema) -> dict[str, Any]:
    """Return the annotations of a call: what is declared of each input, attribute and the result.

    Whatever converts to a tensor is taken for one, so that its type is Any.
    """
    found: dict[str, Any] = {}
    for arg in schema.inputs:
        kind = Sequence[Any] if arg.is_list else Any
        found[arg.name] = Annotated[kind, argument(schema, arg)]
    for attr in schema.attrs:
        found[attr.name] = _annotation(attr)
    found["name"] = str | None
    if schema.outputs:
        told = ", ".join(f"{arg.name}: {argument(schema, arg)}" for arg in schema.outputs)
        found["return"] = Annotated[Any, told]
    return found


def _annotation(attr: AttrSpec) -> Any:
    listed = attr.type.startswith("list(")
    kind = attr.type[5:-1] if listed else attr.type
    if attr.allowed and kind in ("string", "int"):
        one: Any = Literal[attr.allowed]
    else:
        one = _ANNOTATIONS.get(kind, Any)
        if attr.allowed or attr.minimum is not None:
            one = Annotated[one, attribute(attr)]
    return Sequence[one] if listed else one


def signature(schema: OpSchema) -> inspect.Signature:
    """Return the signature of a call with annotations, its defaults as they were written."""
    found = types(schema)
    defaults = {attr.name: written(attr) for attr in schema.attrs if attr.has_default}
    plain = schema.signature()
    parameters = [
        one.replace(annotation=found[one.name], default=defaults.get(one.name, one.default))
        for one in plain.parameters.values()
    ]
    result = found.get("return", None)
    return plain.replace(parameters=parameters, return_annotation=result)


def document(doc: str, schema: OpSchema) -> str:
    """Return a docstring with the declaration below it, which help() shows."""
    parameters = [arg.name for arg in schema.inputs]
    if schema.attrs:
        parameters += ["*", *(attr.name for attr in schema.attrs)]
    rows = [f"input {arg.name}: {argument(schema, arg)}" for arg in schema.inputs]
    rows += [f"attribute {attribute(attr)}" for attr in schema.attrs]
    rows += [f"derived attribute {attribute(attr)}" for attr in schema.derived]
    rows += [f"output {arg.name}: {argument(schema, arg)}" for arg in schema.outputs]
    call = f"{schema.op_name}({', '.join(parameters)})"
    declared = "\n".join([call, *(f"    {row}" for row in rows)])
    return f"{doc}\n\n{declared}" if doc else declared
