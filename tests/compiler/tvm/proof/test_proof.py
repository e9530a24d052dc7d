"""Kernels are proven, altered ones are not: what is proven runs in bounds and without races."""

from __future__ import annotations

import itertools
import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest
import tensorflow as tf
from tvm import tirx
from tvm.tirx import stmt as tir_stmt

from composite.compiler import tvm as backend
from composite.compiler.tvm.proof import Proof, prove
from composite.compiler.tvm.proof.expressions import Expressions
from composite.compiler.tvm.proof.integers import Integers
from composite.compiler.tvm.show import show
from tests.compiler.tvm.conftest import library_of
from tests.compiler.tvm.proof.mutants import mutant, places
from tests.compiler.tvm.proof.running import Run, TooLong

TWO_CORES = backend.Target.of("x86-64-v3", 2)


class Case(NamedTuple):
    """A function and the class of its calls."""

    function: Callable[..., Any]
    shapes: Sequence[Sequence[int | str]]
    dtypes: Sequence[Any] = ()

    def written(self) -> backend.Written:
        dtypes = [*self.dtypes, *[tf.float32] * (len(self.shapes) - len(self.dtypes))]
        specs = [
            tf.TensorSpec([d if isinstance(d, int) else None for d in shape], dtype)
            for shape, dtype in zip(self.shapes, dtypes, strict=True)
        ]
        return backend.write(library_of(self.function, specs), self.shapes, target=TWO_CORES)


def _recurrence(x: Any, w: Any) -> Any:
    state = tf.zeros([32, 128])
    for t in tf.range(5):
        state = tf.tanh(tf.matmul(state, w) + x[t])
    return state


CASES = {
    "elementwise": Case(lambda x, b: tf.tanh(x) * b, [("s0", "s1"), ("s1",)]),
    "slice and concat": Case(
        lambda x, y: tf.concat([x[:, 3:], y], 1) + 1.0, [("s0", 40), ("s0", "s1")]
    ),
    "transpose": Case(lambda x: tf.transpose(x) + 1.0, [("s0", "s1")]),
    "product": Case(
        lambda x, w, b: tf.nn.relu(tf.matmul(x, w, transpose_b=True) + b),
        [("s0", 64), (48, 64), (48,)],
    ),
    "product of known sizes": Case(tf.matmul, [(33, 40), (40, 50)]),
    "softmax": Case(tf.nn.softmax, [("s0", 40)]),
    "sum of columns": Case(lambda x: tf.reduce_sum(x, 0), [("s0", "s1")]),
    "running sum": Case(lambda x: tf.cumsum(x, 0), [("s0", "s1")]),
    "gather": Case(
        lambda x, i: tf.gather(x, i) * 2.0, [("s0", "s1"), ("s2",)], [tf.float32, tf.int32]
    ),
    "gather from the end": Case(
        lambda x, i: tf.reduce_sum(tf.gather(x, tf.where(i < 0, i + 50, i)), -1),
        [(50, 24), ("s0",)],
        [tf.float32, tf.int32],
    ),
    "integer division": Case(lambda a, b: a // b, [("s0", "s1"), ("s1",)], [tf.int32, tf.int32]),
    "convolution": Case(
        lambda x, f: tf.nn.conv2d(x, f, 1, "SAME"), [("s0", 9, 9, 5), (3, 3, 5, 20)]
    ),
    "convolution in place": Case(
        lambda x, f: tf.nn.conv2d(x, f, 1, "VALID"), [("s0", 9, 9, 3), (3, 3, 3, 20)]
    ),
    "convolution of lines in place": Case(
        lambda x, f: tf.nn.conv2d(x, f, 2, "VALID"), [("s0", 80, 80, 3), (5, 3, 3, 20)]
    ),
    "pool": Case(lambda x: tf.nn.max_pool2d(x, 2, 2, "VALID"), [("s0", 8, 8, 16)]),
    "loop": Case(tf.function(_recurrence), [(5, 32, 128), (128, 128)]),
}


@pytest.fixture(scope="module")
def written() -> dict[str, backend.Written]:
    return {name: case.written() for name, case in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_is_proven(name: str, written: dict[str, backend.Written]) -> None:
    proof = written[name].proof
    assert str(proof) == "proven", "\n".join(map(str, proof.unproven))
    assert proof.accesses > 0


def test_a_convolution_of_images_of_any_size_has_few_guards() -> None:
    shapes: Any = [(1, "s0", "s1", 3), (3, 3, 3, 16)]
    proof = Case(lambda x, f: tf.nn.conv2d(x, f, 1, "SAME"), shapes).written().proof
    assert len(proof.unproven) < proof.accesses / 100


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
def test_layers_for_any_batch_are_proven(level: str) -> None:
    def layers(x: Any, up: Any, down: Any) -> Any:
        hidden = tf.nn.gelu(tf.matmul(tf.reshape(x, [-1, 256]), up))
        y = x + tf.reshape(tf.matmul(hidden, down), tf.shape(x))
        return y - tf.reduce_mean(y, -1, keepdims=True)

    shapes = [("s0", 64, 256), (256, 1024), (1024, 256)]
    specs = [tf.TensorSpec(shape) for shape in ([None, 64, 256], *shapes[1:])]
    target = backend.Target.of(level, 2)
    one = backend.write(library_of(layers, specs), shapes, target=target, constants=(1, 2))
    assert str(one.proof) == "proven"


def minimums(one: backend.Written) -> dict[str, int]:
    return dict(one.plan.function.minimums)


def runs(function: Any, least: dict[str, int]) -> list[Run]:
    """Runs on small sizes of the class, none that has a vector's length."""
    names = sorted({str(d.name) for b in function.params for d in b.shape if hasattr(d, "name")})
    found = []
    for seed, sizes in enumerate(
        itertools.islice(itertools.product((1, 0, 37, 18), repeat=len(names)), 4)
    ):
        at = {n: max(size, least.get(n, 0)) for n, size in zip(names, sizes, strict=True)}
        found.append(Run(function, at, seed))
    return found


def is_wrong(run: Run, proof: Proof) -> bool:
    return bool(run.outside or run.crossed or (run.stored_twice and not proof.overlaps))


# Those whose every element can be followed in seconds.
@pytest.mark.parametrize("name", [name for name in CASES if name not in {"product", "loop"}])
def test_what_is_proven_runs_in_bounds_and_without_races(
    name: str, written: dict[str, backend.Written]
) -> None:
    """The kernel, and some of its mutants: none that goes wrong is proven."""
    one = written[name]
    ((symbol, function), *_) = one.module.functions.items()
    altered = places(function)
    drawn = random.Random(name).sample(range(len(altered)), min(4, len(altered)))
    for number in [None, *drawn]:
        looked_at = function if number is None else mutant(function, number)
        proof = prove({symbol: looked_at}, minimums(one))
        try:
            bad = [run for run in runs(looked_at, minimums(one)) if is_wrong(run, proof)]
        except TooLong:
            continue
        what = "nothing" if number is None else altered[number]
        assert not (bad and proof.is_complete), f"{what}: {bad[0].outside or bad[0].crossed}"
    assert drawn


def mutants_of(one: backend.Written, what: str) -> Iterator[Any]:
    """The kernel altered at each place of a kind, the first one first."""
    ((_, function), *_) = one.module.functions.items()
    return (mutant(function, n) for n, name in enumerate(places(function)) if what in name)


@pytest.mark.parametrize(
    ("name", "what", "reason"),
    [
        ("elementwise", "+ 1]", "may be s0*s1 or more"),
        ("elementwise", "- 1]", "may be below 0"),
        ("elementwise", "int64(8192) not a multiple", "another task's"),
        ("transpose", "no bound", "may be "),
        ("gather", "no check", "may be below 0"),
        ("gather from the end", "no check", "may be below 0"),
        ("product of known sizes", "no bound", "or more"),
        ("loop", "no barrier", "no barrier is at the end of a trip"),
    ],
)
def test_a_mistake_is_found(
    name: str, what: str, reason: str, written: dict[str, backend.Written]
) -> None:
    one = written[name]
    wrong = itertools.islice(mutants_of(one, what), 4)
    proofs = (prove({"kernel": function}, minimums(one)) for function in wrong)
    assert any(reason in failure.reason for proof in proofs for failure in proof.unproven)


def test_a_mistake_in_one_of_two_loops_is_found(written: dict[str, backend.Written]) -> None:
    """One thread runs the first, several the second: proven once only if they are equal."""
    one = written["elementwise"]
    wrong = list(mutants_of(one, "out0_flat"))
    assert len(wrong) >= 4
    for function in wrong:
        assert not prove({"kernel": function}, minimums(one)).is_complete


@pytest.mark.parametrize(("in_rows", "proven"), [("serial", True), ("parallel", False)])
def test_tasks_in_the_loop_of_one_thread_are_looked_at(
    in_rows: str, proven: bool, written: dict[str, backend.Written]
) -> None:
    """Tasks that store one element meet where one thread starts them, not inside of a task."""
    ((_, function), *_) = written["elementwise"].module.functions.items()
    cells = tirx.decl_buffer((8,), "float32", "cells")
    kinds = tir_stmt.ForKind

    def loops(outer: int, inner: int) -> Any:
        row, column = (tirx.Var(f"{name}_{outer}", "int64") for name in ("row", "column"))
        store = tir_stmt.BufferStore(cells, tirx.const(1.0, "float32"), [row])
        zero, eight = tirx.const(0, "int64"), tirx.const(8, "int64")
        return tirx.For(row, zero, eight, outer, tirx.For(column, zero, eight, inner, store))

    inner = kinds.SERIAL if in_rows == "serial" else kinds.PARALLEL
    rows, _ = function.params[0].shape
    chosen = tirx.IfThenElse(
        rows < tirx.const(9, "int64"), loops(kinds.SERIAL, inner), loops(kinds.PARALLEL, inner)
    )
    body = tirx.SeqStmt([tir_stmt.AllocBuffer(cells), chosen])
    assert prove({"kernel": function.with_body(body)}, {}).is_complete == proven


def test_choices_are_one_integer_if_they_hang_on_the_same() -> None:
    integers = Integers()
    expressions = Expressions(integers, lambda _, __: None)
    a, b = (tirx.Var(name, "int64") for name in "ab")
    expressions.variables = {name: integers.atom(name) for name in "ab"}
    p, q = (tirx.Var(name, "bool") for name in "pq")
    assert expressions.value(tirx.Select(p, a, b)) != expressions.value(tirx.Select(q, a, b))
    less = [expressions.value(tirx.Select(a < b, a, b)) for _ in range(2)]
    assert less[0] == less[1]


@pytest.mark.parametrize("divided", ["a size", "a float", "data"])
@pytest.mark.parametrize(
    ("by", "proven"), [("a size", False), ("data", False), ("a float", False), ("3", True)]
)
def test_a_divisor_that_may_be_0_is_told(divided: str, by: str, proven: bool) -> None:
    """Whether or not what is divided by it is understood, or may wrap around."""
    size = tirx.Var("s0", "int64")
    numbers = tirx.decl_buffer((constant(8),), "float32", "in0")
    data = tirx.decl_buffer((constant(8),), "int64", "in1")
    result = tirx.decl_buffer((constant(8),), "int64", "out0")
    sized = tirx.decl_buffer((size,), "float32", "in2")
    values = {
        "a size": size,
        "a float": tirx.Cast("int64", tirx.BufferLoad(numbers, [constant(1)])),
        "data": tirx.BufferLoad(data, [constant(2)]),
        "3": constant(3),
    }
    for kind in (tirx.Div, tirx.Mod):
        store = tir_stmt.BufferStore(result, kind(values[divided], values[by]), [constant(0)])
        function = tirx.PrimFunc([numbers, data, result, sized], store)
        proof = prove({"kernel": function}, {})
        assert proof.is_complete == proven
        if not proven:
            assert proof.unproven[0].reason == "is divided by and may be 0"


def constant(value: int) -> Any:
    return tirx.const(value, "int64")


def test_a_proof_says_what_it_found_and_crosses_processes(
    written: dict[str, backend.Written],
) -> None:
    one = written["gather"]
    *_, wrong = mutants_of(one, "no check")
    proof = prove({"kernel": wrong}, minimums(one))
    assert str(proof).startswith("not proven: kernel: in0_flat[")
    assert pickle.loads(pickle.dumps(proof)) == proof


def test_a_proof_is_shown() -> None:
    case = CASES["elementwise"]
    specs = [tf.TensorSpec([None, None]), tf.TensorSpec([None])]
    text = show(library_of(case.function, specs), case.shapes, "proof", TWO_CORES)
    assert "accesses: proven\n" in text


def test_a_kernel_and_its_record_say_what_is_proven(written: dict[str, backend.Written]) -> None:
    assert written["product"].generate("k").proof == written["product"].proof
