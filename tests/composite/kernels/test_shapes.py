"""Shape classes: symbols, output dims, sizes to try."""

import pytest

from composite.kernels import shapes


def test_symbols_are_known_by_their_numbers():
    found: list[tuple[int | str, ...]] = [("s0", 64), (32, 64), ("s1", "s0"), ()]
    assert shapes.symbols(found) == ["s0", "s1"]
    assert shapes.symbols([("s10", "s9")]) == ["s9", "s10"]
    exact = shapes.substitute(found, {"s0": 5, "s1": 6})
    assert exact == [(5, 64), (32, 64), (6, 5), ()]


@pytest.mark.parametrize(
    ("text", "dims"),
    [
        ("", ()),
        ("1024", (1024,)),
        ("s0,1024", (7, 1024)),
        ("s0 2 *,s1", (14, 9)),
        ("s0 s1 + 3 -", (13,)),
        ("s0 2 //,s0 2 %", (3, 1)),
    ],
)
def test_output_dims_are_postfix(text, dims):
    assert shapes.evaluate(text, {"s0": 7, "s1": 9}) == dims


def test_a_malformed_dim_is_an_error():
    with pytest.raises((ValueError, IndexError)):
        shapes.evaluate("s0 s0", {"s0": 1})


def test_samples_keep_to_the_class():
    assert shapes.samples(["s0", "s1"], [33, 5], [1, 8], [1, 4]) == {"s0": 33, "s1": 8}
    assert shapes.samples(["s0"], [33], [1], [16]) == {"s0": 48}
    assert shapes.samples(["s0"], [], [], []) == {"s0": 48}
    assert shapes.odd_samples(["s0", "s1"], [1, 64], [1, 1]) == {"s0": 7, "s1": 64}


def test_other_sizes_are_powers_around_the_call_that_asked():
    assert [v["s0"] for v in shapes.others({"s0": 32}, [], [])] == [2, 8, 128, 512]
    assert [v["s0"] for v in shapes.others({"s0": 1}, [], [])] == [4, 16]
    assert [v["s0"] for v in shapes.others({"s0": 32}, [16], [4])] == [16, 128, 512]
    # The size is the product; another symbol stays as it was.
    found = shapes.others({"s0": 4, "s1": 10}, [1, 1], [1, 1])
    assert [(v["s0"], v["s1"]) for v in found] == [(1, 10), (16, 10), (64, 10)]
    assert [shapes.size(v) for v in found] == [10, 160, 640]
    assert shapes.others({}, [], []) == []
