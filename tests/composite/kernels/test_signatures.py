"""What libraries say of their functions."""

from __future__ import annotations

import pytest

from composite.kernels.signatures import Parameter, evaluate, names, signature
from tests.composite.tf_op import libraries


def read(text: str, name: str = "f") -> tuple[Parameter, ...] | None:
    return signature(b"\0other(x: Tensor([9], int8))\0" + text.encode() + b"\0", name)


def test_what_tvm_compiled_says_itself() -> None:
    library = libraries.kernels().read_bytes()
    assert signature(library, "row_sums") == (
        Parameter("rows", "float32", ("n", "m")),
        Parameter("sums", "float32", ("n",)),
    )
    assert signature(library, "copy_float8_e5m2") == (
        Parameter("A", "float8_e5m2", ("n",)),
        Parameter("B", "float8_e5m2", ("n",)),
    )
    many = signature(library, "many")
    assert many is not None and len(many) == 80
    assert signature(library, "sums") is None
    assert signature(libraries.foreign().read_bytes(), "good") is None


def test_sizes_are_arithmetic_of_names() -> None:
    found = read("f(a.b: Tensor([m], int8), T.y: Tensor([m - T.int64(1), m * m, 3], bool))")
    assert found == (
        Parameter("a.b", "int8", ("m",)),
        Parameter("T.y", "bool", ("m - 1", "m * m", 3)),
    )
    assert evaluate("m - 1", {"m": 7}) == 6
    assert names("m * m + k // 2") == {"m", "k"}
    assert read("f(x: Tensor([], float32))") == (Parameter("x", "float32", ()),)
    assert read("f()") == ()


@pytest.mark.parametrize(
    "text",
    [
        "g(x: Tensor([1], int8))",
        "ff(x: Tensor([1], int8))",
        "f(x: int32)",
        "f(x: Tensor([T.max(n, 3)], int8))",
        "f(x: Tensor([__import__('os')], int8))",
        "f(x: Tensor([n.real], int8))",
        "f(x: Tensor([n], int8)",
        "f(Tensor([n], int8))",
        "f(x: Tensor([n], int8))\0f(x: Tensor([m], int8))",
    ],
)
def test_what_cannot_be_read_is_unknown(text: str) -> None:
    assert read(text) is None
