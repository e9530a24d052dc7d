"""The runtime does what the instructions of programs say, on every kind of word."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from composite.compiler.tvm.algebra import program
from composite.compiler.tvm.algebra.program import KINDS, Kind, Value, Writer
from composite.kernels import host

LANES = (1, 4, 16, 21)
INT64 = Kind(KINDS.index("int64"), 64, 1, is_float=False)


def kind_of(name: str, lanes: int) -> Kind:
    return Kind(KINDS.index(name), np.dtype(name).itemsize * 8, lanes, is_float=False)


def argument(out: Writer, size: int) -> int:
    """A vector of that many elements of a byte; the number of its buffer."""
    number = out.buffer()
    out.parameters.append([number, 1, 1, 0, size])
    return number


def number(out: Writer, value: int) -> Value:
    return out.constant(program.words(value, INT64))


def loaded(out: Writer, buffer: int, kind: Kind, at: Value | None = None) -> Value:
    place = out.slot(kind.size, out.depth)
    at = at or number(out, 0)
    out.emit("load", kind.number, kind.lanes, 1, out.depth, place, at.place, buffer << 32)
    return Value(place, out.depth)


def stored(out: Writer, buffer: int, kind: Kind, value: Value, at: Value | None = None) -> None:
    at = at or number(out, 0)
    places = value.place, at.place, buffer << 32
    out.emit("store", kind.number, kind.lanes, 1, out.depth, *places)


def run(out: Writer, arrays: Sequence[np.ndarray], folder: Path, tasks: int = 1) -> None:
    path = folder / "one.words"
    path.write_bytes(program.library([out.finish("one")]))
    host.call(path, "one", [a.view(np.uint8) for a in arrays], tasks)


def words(kind: str, lanes: int, seed: int) -> np.ndarray:
    """Any words, the least and the most among them, and zeros."""
    random = np.random.default_rng(seed)
    info = np.iinfo(kind)
    made = np.frombuffer(random.bytes(lanes * np.dtype(kind).itemsize), kind).copy()
    some = random.choice(np.array([info.min, info.max, 0, 1, -1 % (info.max + 1)], kind), lanes)
    return np.where(random.random(lanes) < 0.4, some, made)


def quotient(a: Any, b: Any) -> Any:
    """Rounded to zero; 0 where nothing can be divided."""
    exact = [0 if y == 0 else abs(int(x)) // abs(int(y)) for x, y in zip(a, b, strict=True)]
    signs = [-1 if (int(x) < 0) != (int(y) < 0) else 1 for x, y in zip(a, b, strict=True)]
    return wrapped([n * s for n, s in zip(exact, signs, strict=True)], a.dtype)


def wrapped(numbers: Sequence[int], dtype: Any) -> np.ndarray:
    bits = dtype.itemsize * 8
    return np.array([n % (1 << bits) for n in numbers], f"uint{bits}").view(dtype)


def by_python(function: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    def apply(a: Any, b: Any) -> Any:
        pairs = zip(a, b, strict=True)
        return wrapped([function(int(x), int(y)) if y else 0 for x, y in pairs], a.dtype)

    return apply


def shifted(a: Any, b: Any, *, left: bool) -> Any:
    bits = a.dtype.itemsize * 8
    pairs = zip(a, b, strict=True)
    counts = [(int(x), int(y) % bits) for x, y in pairs]
    return wrapped([x << n if left else x >> n for x, n in counts], a.dtype)


def rest(a: Any, b: Any) -> Any:
    """What is left of `quotient`; 0 where nothing can be divided."""
    whole = quotient(a, b)
    triples = zip(a, b, whole, strict=True)
    return wrapped([int(x) - int(q) * int(y) if y else 0 for x, y, q in triples], a.dtype)


COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: shifted(a, b, left=True),
    "shr": lambda a, b: shifted(a, b, left=False),
    "div": quotient,
    "mod": rest,
    "floordiv": by_python(lambda x, y: x // y),
    "floormod": by_python(lambda x, y: x % y),
    "min": np.minimum,
    "max": np.maximum,
}
COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_computes_words(tmp_path: Path, kind: str) -> None:
    for lanes in LANES:
        own = kind_of(kind, lanes)
        a, b = words(kind, lanes, 1), words(kind, lanes, 2)
        out = Writer()
        buffers = [argument(out, own.size), argument(out, own.size)]
        operands = [loaded(out, buffer, own) for buffer in buffers]
        expected, results = [], []
        for op, meaning in {**COMPUTED, **COMPARED}.items():
            size = lanes if op in COMPARED else own.size
            made = out.compute(op, own, size, *operands)
            stored(out, argument(out, size), Kind(0, 8, size, is_float=False), made)
            with np.errstate(over="ignore"):
                expected.append(np.asarray(meaning(a, b)).view(np.uint8))
            results.append(np.zeros(size, np.uint8))
        run(out, [a, b, *results], tmp_path)
        for op, got, want in zip([*COMPUTED, *COMPARED], results, expected, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=f"{op} {kind} x {lanes}")


@pytest.mark.parametrize("kind", KINDS)
def test_casts_choices_ramps_and_sums_of_products(tmp_path: Path, kind: str) -> None:
    for lanes in LANES:
        own, flags = kind_of(kind, lanes), Kind(0, 8, lanes, is_float=False)
        a, b, c = (words(kind, lanes, seed) for seed in (1, 2, 3))
        chosen = np.random.default_rng(4).integers(0, 2, lanes).astype(np.uint8)
        out = Writer()
        x, y, z = (loaded(out, argument(out, own.size), own) for _ in range(3))
        flag = loaded(out, argument(out, lanes), flags)
        made = [
            out.compute("muladd", own, own.size, x, y, z),
            out.compute("select", own, own.size, flag, x, y),
            out.compute("spread", own, own.size, x),
            out.compute("ramp", own, own.size, x, y),
        ]
        with np.errstate(over="ignore"):
            steps = np.arange(lanes).astype(kind)
            expected = [
                a * b + c,
                np.where(chosen, a, b),
                np.full_like(a, a[0]),
                a[0] + steps * b[0],
            ]
        for target in KINDS:
            size = kind_of(target, lanes).size
            made.append(out.compute("cast", own, size, x, extra=KINDS.index(target)))
            expected.append(a.astype(target))
        results = [np.zeros(one.nbytes, np.uint8) for one in expected]
        for value, result in zip(made, results, strict=True):
            place = argument(out, result.size)
            stored(out, place, Kind(0, 8, result.size, is_float=False), value)
        run(out, [a, b, c, chosen, *results], tmp_path)
        for got, want in zip(results, expected, strict=True):
            np.testing.assert_array_equal(got, want.view(np.uint8), err_msg=f"{kind} x {lanes}")


def in_each_task(out: Writer, extent: int, write: Callable[[Value], None], op: str) -> None:
    """Write a loop."""
    counter = out.slot(8, out.depth)
    with out.scope() as code:
        write(Value(counter, out.depth))
        out.end_statement()
        out.emit("end", 0, 0, 0, out.depth)
    low, end = number(out, 0).place, number(out, extent).place
    out.emit(op, 0, 0, len(code) // program.ADVANCE + 1, out.depth, counter, low, end)
    out.place(code)


@pytest.mark.parametrize("tasks", [1, 3, 7])
def test_tasks_share_a_loop_and_meet(tmp_path: Path, tasks: int) -> None:
    """Behind the barrier each reads what all have written before it."""
    out, byte = Writer(), Kind(0, 8, 1, is_float=False)
    first, second = argument(out, 20), argument(out, 20)

    def write(i: Value) -> None:
        value = out.compute("cast", INT64, 1, i, extra=0)
        stored(out, first, byte, value, i)

    def turned(i: Value) -> None:
        last = out.compute("sub", INT64, 8, number(out, 19), i)
        stored(out, second, byte, loaded(out, first, byte, last), i)

    with out.scope() as code:
        in_each_task(out, 20, write, "parallel")
        out.emit("meet", 0, 0, 0, out.depth)
        in_each_task(out, 20, turned, "parallel")
        out.emit("end", 0, 0, 0, out.depth)
    out.emit("team", 0, 0, len(code) // program.ADVANCE + 1, out.depth)
    out.place(code)
    results = [np.zeros(20, np.uint8), np.zeros(20, np.uint8)]
    run(out, results, tmp_path, tasks)
    assert [list(r) for r in results] == [list(range(20)), list(range(19, -1, -1))]


def test_a_workspace_begins_with_no_numbers(tmp_path: Path) -> None:
    out, byte = Writer(), Kind(0, 8, 16, is_float=False)
    result, own = argument(out, 16), out.buffer()
    out.emit("allocate", 0, 0, 4, out.depth, own, number(out, 4).place)
    stored(out, result, byte, loaded(out, own, byte))
    found = np.zeros(16, np.uint8)
    run(out, [found], tmp_path)
    assert set(found) == {0xFF}


@pytest.mark.parametrize("at", [-1, 13, 1 << 40, -(1 << 62)])
@pytest.mark.parametrize("op", ["load", "store"])
def test_no_access_leaves_its_buffer(tmp_path: Path, op: str, at: int) -> None:
    out, four = Writer(), Kind(0, 8, 4, is_float=False)
    buffer, word = argument(out, 16), out.slot(4, 0)
    out.emit(op, 0, four.lanes, 1, 0, word, number(out, at).place, buffer << 32)
    with pytest.raises(RuntimeError, match="it reads or writes outside of a buffer"):
        run(out, [np.zeros(16, np.uint8)], tmp_path)


def test_a_condition_that_does_not_hold_ends_the_call(tmp_path: Path) -> None:
    for kind, error in (("IndexError", host.Refused), ("ValueError", RuntimeError)):
        out = Writer()
        out.messages += [kind, "no such row"]
        out.emit("assert", 0, 0, 0, 0, number(out, 0).place)
        with pytest.raises(error, match="no such row"):
            run(out, [], tmp_path)


def test_arguments_are_what_a_program_takes(tmp_path: Path) -> None:
    out = Writer()
    argument(out, 16)
    path = tmp_path / "one.words"
    path.write_bytes(program.library([out.finish("one")]))
    for wrong in (
        [],
        [np.zeros(15, np.uint8)],
        [np.zeros(16, np.uint16)],
        [np.zeros((4, 4), np.uint8)],
    ):
        with pytest.raises(RuntimeError, match="TypeError"):
            host.call(path, "one", wrong)
    with pytest.raises(RuntimeError, match="no program other"):
        host.call(path, "other", [np.zeros(16, np.uint8)])


def test_a_file_that_ends_too_early_is_refused(tmp_path: Path) -> None:
    out = Writer()
    argument(out, 16)
    whole = program.library([out.finish("one")])
    path = tmp_path / "one.words"
    for size in range(len(program.MAGIC), len(whole), 8):
        path.write_bytes(whole[:size])
        with pytest.raises(RuntimeError, match="too early"):
            host.call(path, "one", [np.zeros(16, np.uint8)])


@pytest.mark.slow
def test_processors_without_avx2_compute_the_same() -> None:
    """The environment excludes it in another process, which runs what computes words."""
    products = Path(__file__).parents[3] / "composite" / "reference" / "test_over_ring.py"
    tests = (
        f"{products}::test_products_of_words_are_those_of_numpy",
        f"{__file__}::test_what_computes_words",
        f"{__file__}::{test_casts_choices_ramps_and_sums_of_products.__name__}",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
    variables = os.environ | {"COMPOSITE_ISA": "x86-64-v2"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
