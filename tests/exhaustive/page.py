"""The tables of docs/numerics.md, of measured.json and the bounds that are stated."""

from __future__ import annotations

from collections.abc import Mapping

from tests.exhaustive.functions import FUNCTIONS, PAIRS
from tests.exhaustive.judge import Found
from tests.exhaustive.records import TENSORFLOW, Records, bound_of, is_complete
from tests.exhaustive.sweep import GRADUAL

_HEAD = (
    "| function | level | largest error | at | bound | steps back | TensorFlow |\n"
    "|---|---|---|---|---|---|---|"
)
_OTHERS = "| function | float64 | at | bound | float16 | bfloat16 |\n|---|---|---|---|---|---|"


def tables(records: Records) -> str:
    """Return the tables."""
    parts = [_HEAD]
    for name in (*FUNCTIONS, *PAIRS):
        if found := records.get(name, {}).get("float32"):
            parts += _rows(name, found)
    parts += [
        f"| {name} | {_levels([*found])} | {_errors_of(found)} |  | 0.5 |  |  |"
        for name in sorted(records)
        if name.startswith("round_to_")
        for found in (records[name]["float32"],)
    ]
    parts += ["", _OTHERS]
    parts += [_other_row(name, records.get(name, {})) for name in (*FUNCTIONS, *PAIRS)]
    return "\n".join(parts)


def _rows(name: str, found: Mapping[str, Found]) -> list[str]:
    """A row for the levels with the same results, as far as they are told."""
    tensorflow = found.get(TENSORFLOW)
    theirs = "" if tensorflow is None else f"{tensorflow.error:.2f}"
    rows: dict[tuple[str, ...], list[str]] = {}
    for level, one in found.items():
        if level == TENSORFLOW or level.endswith(GRADUAL):
            continue
        gradual = found.get(level + GRADUAL, Found())
        worst = one if one.error >= gradual.error else gradual
        cells = (
            f"{worst.error:.2f}{'' if is_complete(name, one) else ' (of a sample)'}",
            _place(worst.error_at),
            f"{bound_of(name, 'float32', level):.1f}",
            _steps(one, bool((FUNCTIONS | PAIRS)[name].pieces)),
            theirs,
        )
        rows.setdefault(cells, []).append(level)
    return [
        f"| {name} | {_levels(levels)} | {' | '.join(cells)} |" for cells, levels in rows.items()
    ]


def _errors_of(found: Mapping[str, Found]) -> str:
    wrong = sum(one.outside for one in found.values())
    part = "" if all(one.inputs > 1 << 31 for one in found.values()) else " (of a sample)"
    return f"{wrong} wrong" if wrong else f"0.50{part}"


def _steps(found: Found, is_known: bool) -> str:
    if not is_known:
        return ""
    return f"{found.back} of {found.back_most}" if found.back else "none"


def _levels(levels: list[str]) -> str:
    return ", ".join(levels).replace("x86-64-", "")


def _place(at: float | list[float]) -> str:
    numbers = at if isinstance(at, list) else [at]
    return ", ".join(f"{x:.9g}" for x in numbers)


def _other_row(name: str, found: Mapping[str, Mapping[str, Found]]) -> str:
    worst = {
        dtype: max(
            (one for level, one in levels.items() if level != TENSORFLOW), key=lambda f: f.error
        )
        for dtype, levels in found.items()
        if dtype != "float32"
    }
    double = worst.get("float64", Found())
    bound = bound_of(name, "float64", "")
    narrow = [f"{worst[d].error:.3f}" if d in worst else "" for d in ("float16", "bfloat16")]
    first = f"{double.error:.2f} | {_place(double.error_at)} | {bound:.1f}"
    return f"| {name} | {first} | {' | '.join(narrow)} |"
