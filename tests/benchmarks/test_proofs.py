"""Which kernels are counted, a call at its sizes and with a batch that varies; what proofs take."""

from __future__ import annotations

from benchmarks.proofs import Asked, call_of, took
from benchmarks.works.gallery import GALLERY


def test_a_call_is_stated_with_its_sizes_or_with_a_batch() -> None:
    work = GALLERY["group norm"]
    known = call_of(work, "bfloat16", varies=False)
    assert known["x"] == ("bfloat16", (8, 32, 32, 64))
    assert known["groups"] == 8
    varying = call_of(work, "float32", varies=True)
    assert varying["x"] == ("float32", ("batch", 32, 32, 64))
    assert varying["gamma"] == ("float32", (64,))


def test_a_call_has_each_input_also_of_an_op_that_is_chained_through_several() -> None:
    for work in GALLERY.values():
        call = call_of(work, "float32", varies=False)
        assert [name for name in call if name not in work.attrs] == [
            arg.name for arg in work.op().schema.inputs
        ]


def test_weights_are_matrices_of_known_sizes() -> None:
    asked = Asked("dense", None, [("s0", 64), (64, 48), (48,), ("s0", 48)], ())
    assert asked.constants() == (1,)


def test_what_the_proofs_took_is_told() -> None:
    told = took([4.0, 16.0, 100.0, 2400.0])
    assert told == "a proof took 58 ms (median), 25% of them more than 100, the slowest 2400"
