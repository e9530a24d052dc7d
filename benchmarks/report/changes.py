"""What changed between two runs, beyond the noise of either.

A figure of a run is a median with its quartiles, of samples that were taken in turns. It changed if
the quartiles of the runs do not overlap and the medians differ by more than 3 %; a figure without
quartiles, if it differs by more than 10 %. Of layers beside the peers the ratios are compared: both
sides of a ratio were measured in the same minutes, so a slower machine alone changes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from benchmarks.report.machine import kind_of
from benchmarks.report.tables import OURS, PEERS
from benchmarks.report.terminal import fit
from benchmarks.rows import Row

LEAST = 0.03
LEAST_WITHOUT_SPREAD = 0.10

RULE = f"""\
A figure changed if the quartiles of its samples in the two runs do not overlap and the medians
differ by more than {LEAST:.0%}; one without quartiles, if it differs by more than
{LEAST_WITHOUT_SPREAD:.0%}. Of layers beside peers, the ratios are compared.
"""

_LESS_IS_BETTER = ("us", "ms", "s", "KB", "MB", "GB")
_MORE_IS_BETTER = ("GFLOP/s", "GB/s")


class Figure(NamedTuple):
    """A median with its quartiles, None where there are none; whether more or less is better."""

    median: float
    low: float | None
    high: float | None
    unit: str
    more_is_better: bool | None


class Change(NamedTuple):
    """A figure that is another one."""

    what: str
    old: Figure
    new: Figure

    @property
    def verdict(self) -> str:
        """Whether that is better or worse; more or less, where neither is known to be."""
        more = self.new.median > self.old.median
        if self.new.more_is_better is None:
            return "more" if more else "less"
        return "better" if more == self.new.more_is_better else "worse"


def lines(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """What changed, a line each, worse before better; and what only one of the runs has."""
    yield from _notes(old, new)
    before, after = _figures(old), _figures(new)
    common = [what for what in before if what in after]
    changes = [Change(what, before[what], after[what]) for what in common]
    changed = [one for one in changes if is_changed(one.old, one.new)]
    for verdict in ("worse", "better", "more", "less"):
        same = [one for one in changed if one.verdict == verdict]
        if same:
            yield f"{verdict}:"
        for one in sorted(same, key=lambda one: -abs(_share(one))):
            yield fit(
                f"{one.old.median:.3g} > {one.new.median:.3g} {one.new.unit}".strip(), one.what
            )
    yield f"{len(changed)} of {len(common)} figures changed beyond noise"
    for name, some, other in (("old", before, after), ("new", after, before)):
        alone = sum(what not in other for what in some)
        if alone:
            yield f"{alone} figures are in the {name} run alone"


def is_changed(old: Figure, new: Figure) -> bool:
    """Whether two figures differ beyond noise; see `RULE`."""
    share = abs(new.median - old.median) / max(abs(old.median), 1e-12)
    if old.low is None or old.high is None or new.low is None or new.high is None:
        return share > LEAST_WITHOUT_SPREAD
    return share > LEAST and (new.low > old.high or new.high < old.low)


def _share(change: Change) -> float:
    return change.new.median / max(abs(change.old.median), 1e-12) - 1


def _notes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    kinds = [kind_of(one["machine"]) for one in (old, new)]
    if kinds[0] != kinds[1]:
        yield f"these are machines of two kinds, {kinds[0]} and {kinds[1]}"
    elif old["machine"]["cpu"] != new["machine"]["cpu"]:
        yield f"these are two machines: {old['machine']['cpu']} and {new['machine']['cpu']}"
    for name, one in (("old", old), ("new", new)):
        if one["quick"]:
            yield f"the {name} run was a quick one: few samples, wide spreads"


def _figures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """The figures of a run by what they are of."""
    found: dict[str, Figure] = {}
    for subject, rows in results["subjects"].items():
        for fields in rows:
            data = fields["data"]
            if "columns" in data:
                found.update(_ratios(data))
            elif "versions" not in data:
                row = Row(**fields)
                better = _direction(row)
                found[f"{subject}: {row.what}"] = Figure(
                    row.value, row.low, row.high, row.unit, better
                )
    return found


def _ratios(data: Mapping[str, Any]) -> Iterator[tuple[str, Figure]]:
    for peer in (peer for peer in PEERS if peer in data["columns"] and OURS in data["columns"]):
        ratio = data["columns"][peer]["ratio"]
        what = f"{data['title']}, {data['form']}: {peer} / {OURS}"
        yield what, Figure(ratio["median"], ratio["low"], ratio["high"], "x", True)


def _direction(row: Row) -> bool | None:
    if row.at_least is not None or row.unit in _MORE_IS_BETTER:
        return True
    return False if row.at_most is not None or row.unit in _LESS_IS_BETTER else None
