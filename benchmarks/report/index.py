"""docs/performance.md: the pages of docs/performance/, one for each kind of machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from statistics import median

from benchmarks.report import compared, tables
from benchmarks.report.machine import KINDS

_HEAD = """\
# Performance

<!-- Generated from docs/performance/: pytest --update-golden tests/benchmarks/report -->

Other kernels run on another kind of processor, so each kind has a page of its own. All figures of a
page are from one machine, which the page names, and each ratio is from one run.

A figure below is the time of a peer divided by the time of tf-composite, the median over all layers
of the page: above 1, tf-composite is faster.
"""

_MEASURED = re.compile(r"^Measured on (?P<what>.*)\.$", re.MULTILINE)


def render(pages: Mapping[str, str]) -> str:
    """The page; `pages` has the text of each, by its kind. ValueError for a page without ratios."""
    rows = []
    for kind in (kind for kind in KINDS if kind in pages):
        works = compared.read(pages[kind])
        measured = _MEASURED.search(pages[kind])
        ratios = [compared.ratios(works, peer) for peer in tables.PEERS]
        medians = [f"{median(some):.2f}" if some else tables.MISSING for some in ratios]
        name = f"[{kind}](performance/{kind}.md), {len(works)} layers"
        rows.append([name, measured["what"] if measured else tables.MISSING, *medians])
    missing = [kind for kind in KINDS[1:] if kind not in pages]
    lines = [_HEAD, *tables.table(["kind", "measured on", *tables.PEERS], rows)]
    if missing:
        lines += [f"Without a page: {', '.join(missing)}.", ""]
    lines.append(
        '`make bench ARGS="--page docs/performance"` writes the page of the machine at hand.'
    )
    return "\n".join(lines) + "\n"
