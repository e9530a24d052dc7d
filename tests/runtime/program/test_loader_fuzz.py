"""Damaged programs: whatever the bytes say, the loader answers with an error or with a program.

Bits are flipped, bytes cut off, and fields of well-formed programs exchanged; what still parses is
expanded. `make asan` runs this against a runtime that AddressSanitizer watches, and longer.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tensorflow as tf
from google.protobuf import text_format
from google.protobuf.message import DecodeError
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite import Composite
from composite.binding import native
from tests.conftest import SANITIZED
from tests.runtime.program.fuzz_bodies import branches, loops, shapes
from tests.runtime.programs import expand

# How many damaged programs of each kind a base is made into.
ROUNDS = int(os.environ.get("COMPOSITE_FUZZ_ROUNDS", "60"))

SHAPES: list[Any] = [[[4, 3], [4, 3]], [[None, 3], [None, 3]], [None, None], [[], [2, 2, 2]]]


def compiled(function: Callable[..., Any]) -> str:
    """The program of a body, as text."""
    decorate = Composite(
        f"LoaderFuzz{function.__name__.title()}",
        inputs=["x: T", "y: T"],
        attrs=["k: int = 2", 'act: string = "RELU"'],
        derived_attrs=["T: {float, double}"],
        outputs=["o: T"],
    )
    return text_format.MessageToString(decorate(function).program)


@pytest.fixture(params=[branches, loops, shapes], ids=lambda one: one.__name__)
def base(request: pytest.FixtureRequest, golden: Callable[[str, str], None]) -> FunctionDefLibrary:
    """A program. MLIR does not run under a sanitizer: there it is what was compiled before."""
    name = f"program_{request.param.__name__}.txtpb"
    if SANITIZED is None:
        golden(compiled(request.param), name)
    text = (request.path.parent / "golden" / name).read_text(encoding="utf-8")
    return text_format.Parse(text, FunctionDefLibrary())


def flipped(data: bytes, source: random.Random) -> bytes:
    """Some bits are others."""
    damaged = bytearray(data)
    for _ in range(source.randint(1, 4)):
        damaged[source.randrange(len(damaged))] ^= 1 << source.randrange(8)
    return bytes(damaged)


def cut(data: bytes, source: random.Random) -> bytes:
    """The end is missing, or a piece in the middle."""
    start = source.randrange(len(data))
    return data[:start] + data[start + source.randint(1, 40) :] * source.randint(0, 1)


def exchanged(data: bytes, source: random.Random) -> bytes:
    """A well-formed program that says something else."""
    program = FunctionDefLibrary.FromString(data)
    for _ in range(source.randint(1, 3)):
        source.choice(EXCHANGES)(program, source)
    return program.SerializeToString()


def _node(program: FunctionDefLibrary, source: random.Random) -> Any:
    nodes = [node for function in program.function for node in function.node_def]
    return source.choice(nodes)


def _other_input(program: FunctionDefLibrary, source: random.Random) -> None:
    node, other = _node(program, source), _node(program, source)
    if node.input:
        node.input[source.randrange(len(node.input))] = source.choice([other.name, "x", "c0", ""])


def _other_kind(program: FunctionDefLibrary, source: random.Random) -> None:
    _node(program, source).op = _node(program, source).op


def _other_attribute(program: FunctionDefLibrary, source: random.Random) -> None:
    node, other = _node(program, source), _node(program, source)
    if node.attr and other.attr:
        value = other.attr[source.choice(sorted(other.attr))]
        node.attr[source.choice(sorted(node.attr))].CopyFrom(value)


def _other_number(program: FunctionDefLibrary, source: random.Random) -> None:
    numbers = [
        value
        for function in program.function
        for node in function.node_def
        for value in node.attr.values()
        if value.WhichOneof("value") == "i"
    ]
    if numbers:
        source.choice(numbers).i = source.choice([-1, 0, 7, 1 << 31, (1 << 63) - 1, -(1 << 63)])


def _other_operator(program: FunctionDefLibrary, source: random.Random) -> None:
    node = _node(program, source)
    for name in ("operator", "function", "spec", "op"):
        if name in node.attr:
            node.attr[name].s = source.choice([b"add", b"matmul", b"range", b"sis", b"Pack", b""])


def _no_node(program: FunctionDefLibrary, source: random.Random) -> None:
    function = source.choice(program.function)
    if function.node_def:
        del function.node_def[source.randrange(len(function.node_def))]


def _other_region(program: FunctionDefLibrary, source: random.Random) -> None:
    name = source.choice(program.function).signature.name
    for value in _node(program, source).attr.values():
        if value.s and any(f.signature.name == value.s.decode() for f in program.function):
            value.s = name.encode()


EXCHANGES: list[Callable[[FunctionDefLibrary, random.Random], None]] = [
    _other_input,
    _other_kind,
    _other_attribute,
    _other_number,
    _other_operator,
    _no_node,
    _other_region,
]


def damaged(base: FunctionDefLibrary, how: Callable[..., bytes], op: str) -> Iterator[bytes]:
    """Yields programs under a name that no other test registers."""
    source = random.Random(f"{op} {how.__name__}")
    program = FunctionDefLibrary()
    program.CopyFrom(base)
    for number in range(ROUNDS):
        program.function[0].signature.name = f"{op}{how.__name__.title()}{number}"
        program.function[0].attr["_digest"].s = f"{number:032x}".encode()
        yield how(program.SerializeToString(deterministic=True), source)


@pytest.mark.parametrize("how", [flipped, cut, exchanged], ids=lambda one: one.__name__)
def test_damage_is_an_error(base: FunctionDefLibrary, how: Callable[..., bytes]) -> None:
    outcomes = {"refused": 0, "expanded": 0, "not expanded": 0}
    for data in damaged(base, how, base.function[0].signature.name):
        try:
            native.call("composite_register", data)
            name = FunctionDefLibrary.FromString(data).function[0].signature.name
        except (tf.errors.OpError, DecodeError, UnicodeDecodeError):
            outcomes["refused"] += 1
            continue
        for in_shapes in SHAPES:
            try:
                expand(name, in_shapes, T=tf.float32, k=2, act="RELU")
                outcomes["expanded"] += 1
            except tf.errors.OpError:
                outcomes["not expanded"] += 1
    # Else the damage is such that nothing of it is tested.
    assert outcomes["refused"]
    if how is exchanged:
        assert outcomes["expanded"]
        assert outcomes["not expanded"]
