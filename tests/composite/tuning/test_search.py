"""The order in which kernels are tried, on a space without kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

from composite.compiler.tvm.choices import Choices, Chosen, Knob
from composite.tuning.search import Search


class Point(NamedTuple):
    choices: dict[str, Any]
    knobs: tuple[Knob, ...]
    digest: str


def make(given: Chosen) -> Point:
    """Tiles, an order that matters for tiles of 4 alone, and a knob that changes nothing."""
    choices = Choices(given)
    tile = choices.choose("tile", (1, 2, 4, 8), 2)
    code = f"{tile}"
    if tile == 4:
        code += choices.choose("order", ("up", "down"), "up")
    choices.choose("idle", (0, 1), 0)
    code += str(choices.choose("depth", (64, 128, 256, 512), 64))
    return Point(choices.settled, choices.knobs, code)


def ratio(point: Point) -> float:
    """The best has tile 4, order down, depth 256."""
    score = {1: 1.5, 2: 1.0, 4: 0.9, 8: 1.2}[point.choices["tile"]]
    score *= {64: 1.0, 128: 0.95, 256: 0.8, 512: 1.1}[point.choices["depth"]]
    return score * (0.7 if point.choices.get("order") == "down" else 1.0)


def searched(trials: int, seed: int = 0) -> tuple[Search[Point], list[Point]]:
    search = Search(make, trials, seed)
    points: list[Point] = []
    while len(points) < trials and (point := search.propose()) is not None:
        points.append(point)
        search.tell(point, ratio(point))
    return search, points


def test_nothing_is_tried_twice_and_the_space_ends() -> None:
    search, points = searched(100)
    digests = [point.digest for point in points]
    assert len(set(digests)) == len(digests)
    assert search.default.digest not in digests
    # All kernels but the default: 4 tiles, one in two orders, by 4 depths.
    assert len(digests) == 5 * 4 - 1


def test_first_one_knob_at_a_time() -> None:
    _, points = searched(8)
    default = make({}).choices
    for point in points[:4]:
        assert sum(point.choices.get(n) != default[n] for n in default) == 1
    changed = [next(n for n in default if p.choices[n] != default[n]) for p in points[:2]]
    assert changed == ["tile", "depth"]


def test_it_finds_what_needs_three_changes() -> None:
    search, _ = searched(16)
    (best,) = search.best(1)
    assert best.choices["tile"] == 4
    assert best.choices["depth"] == 256
    assert best.choices["order"] == "down"


def test_the_same_seed_asks_the_same() -> None:
    assert [p.digest for p in searched(12, 3)[1]] == [p.digest for p in searched(12, 3)[1]]
    assert [p.digest for p in searched(12, 3)[1]] != [p.digest for p in searched(12, 4)[1]]


def test_what_failed_or_is_slower_has_no_part_in_the_best() -> None:
    search = Search(make, 8)
    for ratio_of in (None, 1.2, 0.9):
        point = search.propose()
        assert point is not None
        search.tell(point, ratio_of)
    assert search.best(3) == [point]


def test_a_kernel_without_choices_has_none_to_propose() -> None:
    search = Search(lambda _: Point({}, (), "only"), 8)
    assert search.propose() is None
    assert search.best(1) == []


def test_what_was_good_elsewhere_is_tried_first() -> None:
    elsewhere: Chosen = {"tile": 4, "order": "down", "depth": 512, "of another version": 1}
    search = Search(make, 8, first=[elsewhere])
    point = search.propose()
    assert point is not None
    assert point.choices == {"tile": 4, "order": "down", "depth": 512, "idle": 0}


def test_choices_that_leave_no_kernel_are_passed_over() -> None:
    def without_eights(given: Chosen) -> Point | None:
        return None if given.get("tile") == 8 else make(given)

    search = Search(without_eights, 40)
    found = [point for point in iter(search.propose, None) if point is not None]
    assert {point.choices["tile"] for point in found} == {1, 2, 4}
