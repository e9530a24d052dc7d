"""A guarded kernel does what it did, and ends in front of an access outside of its buffer."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from composite.binding import native
from composite.compiler import tvm as backend
from composite.compiler.tvm.proof import Proof, Unproven, guarded
from composite.kernels import verify
from tests.compiler.tvm.conftest import library_of
from tests.compiler.tvm.proof.mutants import Mutation, mutant, places
from tests.compiler.tvm.proof.running import TooLong
from tests.compiler.tvm.proof.test_proof import CASES, minimums, runs

FOLLOWED = ["elementwise", "gather", "integer division"]


def with_guards(function: Any, one: backend.Written) -> Any:
    return guarded({"kernel": function}, minimums(one))["kernel"]


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_would_go_outside_ends_before(name: str) -> None:
    one = CASES[name].written()
    ((_, function), *_) = one.module.functions.items()
    outside = 0
    wrong = [n for n, what in enumerate(places(function)) if "1]" in what or "no " in what]
    for number in [None, *random.Random(name).sample(wrong, min(6, len(wrong)))]:
        altered = function if number is None else mutant(function, number)
        try:
            before = runs(altered, minimums(one))
            after = runs(with_guards(altered, one), minimums(one))
        except TooLong:
            continue
        for plain, safe in zip(before, after, strict=True):
            assert not safe.outside
            assert safe.failed == (plain.failed or bool(plain.outside))
            outside += bool(plain.outside)
    assert outside


class Far(Mutation):
    """Moves each store of the output by more than a process may address."""

    def __init__(self, by: int) -> None:
        super().__init__(0)
        self._by = by

    def _here(self, what: str) -> bool:
        return what.startswith("out0_flat[") and what.endswith("+ 1]")

    def _moved(self, e: Any, by: int) -> Any:
        return super()._moved(e, by * self._by)


def moved(one: backend.Written, by: int) -> backend.Written:
    """A kernel with that mistake, as if the compiler had written it."""
    ((symbol, function), *_) = one.module.functions.items()
    wrong = function.with_body(Far(by).statement(function.body))
    functions = {**one.module.functions, symbol: wrong}
    return dataclasses.replace(one, module=dataclasses.replace(one.module, functions=functions))


@pytest.mark.parametrize("by", [2**45, -(2**45)])
def test_a_check_refuses_a_kernel_that_would_end_the_process(tmp_path: Path, by: int) -> None:
    case = CASES["elementwise"]
    kernel = moved(case.written(), by).generate("k_far")
    assert not kernel.proof.is_complete
    assert kernel.guarded == "k_far_guarded"
    backend.link(kernel, tmp_path / "k.so", native.library_path())
    shapes = [(5, 7), (7,)]
    library = library_of(case.function, [tf.TensorSpec(shape) for shape in shapes])
    with pytest.raises(verify.Mismatch, match="an index of out0_flat is outside of it"):
        verify.check(
            tmp_path / "k.so", "k_far", lambda _: library, [shapes], guarded=kernel.guarded
        )


def test_a_right_kernel_passes_with_guards(tmp_path: Path) -> None:
    one = CASES["gather"].written()
    unproven = Proof(1, 0, (Unproven("kernel", "in0", "i", "is not looked at"),))
    one.__dict__["proof"] = unproven  # as if it had been too difficult
    kernel = one.generate("k_right")
    backend.link(kernel, tmp_path / "k.so", native.library_path())
    shapes = [(5, 7), (9,)]
    library = library_of(
        CASES["gather"].function, [tf.TensorSpec(shapes[0]), tf.TensorSpec(shapes[1], tf.int32)]
    )
    found = verify.check(
        tmp_path / "k.so", "k_right", lambda _: library, [shapes], guarded=kernel.guarded
    )
    assert found.same_bits


def test_a_kernel_that_would_be_guards_is_refused() -> None:
    one = CASES["gather"].written()
    far = Unproven("kernel", "in0", "i", "is not looked at")
    one.__dict__["proof"] = Proof(1001, 0, (far,) * 1001)
    with pytest.raises(backend.NotCovered, match=r"1001 accesses are not proven .*: the first is"):
        one.generate("k_guards")


def test_what_is_proven_has_no_guards() -> None:
    kernel = CASES["elementwise"].written().generate("k_proven")
    assert not kernel.guarded
    assert all(b"k_proven_guarded" not in data for data in kernel.objects.values())
