"""docs/ratios.svg, the README's picture: for each family of layers, the ratios to the peers.

Written as SVG elements, so that it needs no matplotlib and so that one file suits light and dark
themes: the style has colours for both, and the background is a part of the picture. The same page
gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple
from xml.etree import ElementTree

from benchmarks.report.compared import Compared, ratios, read
from benchmarks.report.tables import PEERS

_WIDTH, _LEFT, _RIGHT = 800.0, 128.0, 24.0
_TOP, _ROW, _LANE, _BOTTOM = 66.0, 34.0, 7.0, 40.0

_LIGHT = ("#ffffff", "#1f2328", "#59636e", "#d1d9e0", "#f6f8fa")
_DARK = ("#0d1117", "#f0f6fc", "#9198a1", "#3d444d", "#151b23")
_PEERS_LIGHT = ("#bc4c00", "#0969da", "#1a7f37", "#8250df")
_PEERS_DARK = ("#f0883e", "#58a6ff", "#3fb950", "#bc8cff")


class _Axis(NamedTuple):
    """The logarithmic axis: it shows the ratios from `least` to `most`."""

    least: float
    most: float

    def x(self, ratio: float) -> float:
        """The place of a ratio."""
        share = math.log(ratio / self.least) / math.log(self.most / self.least)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def ticks(self) -> list[float]:
        """The powers of two on it."""
        first, last = math.ceil(math.log2(self.least)), math.floor(math.log2(self.most))
        return [2.0**power for power in range(first, last + 1)]


def draw(page: str) -> str:
    """The SVG text for the tables of a page. ValueError where the page has none."""
    works = read(page)
    groups = {"All layers": works}
    for work in works:
        groups.setdefault(work.family, []).append(work)
    shown = [ratio for work in works for ratio in work.ratios.values()]
    axis = _Axis(min([*shown, 0.5]) * 0.95, max([*shown, 2.0]) * 1.1)
    height = _TOP + _ROW * len(groups) + _BOTTOM
    svg = ElementTree.Element(
        "svg",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH:g} {height:g}",
        width=f"{_WIDTH:g}",
        height=f"{height:g}",
        role="img",
    )
    _add(svg, "title", "Time of each peer divided by the time of tf-composite")
    _add(svg, "style", _style())
    _add(svg, "rect", width=_WIDTH, height=height, fill=None, cls="page")
    _legend(svg, axis)
    _labels(svg, axis, height)
    for number, (name, some) in enumerate(groups.items()):
        top = _TOP + number * _ROW
        if number % 2 == 0:
            _add(svg, "rect", x=8, y=top, width=_WIDTH - 16, height=_ROW, cls="band")
        _family(svg, axis, name, some, top)
    ElementTree.indent(svg)
    return ElementTree.tostring(svg, encoding="unicode") + "\n"


def _style() -> str:
    font = "text { font: 12px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; }"
    light, dark = _colours(_LIGHT, _PEERS_LIGHT), _colours(_DARK, _PEERS_DARK)
    return f"{font} {light} @media (prefers-color-scheme: dark) {{ {dark} }}"


def _colours(theme: Sequence[str], peers: Sequence[str]) -> str:
    page, text, quiet, grid, band = theme
    rules = [
        f".page {{ fill: {page}; }}",
        f"text {{ fill: {text}; }}",
        f".quiet {{ fill: {quiet}; }}",
        f".grid {{ stroke: {grid}; }}",
        f".one {{ stroke: {text}; stroke-width: 1.5; }}",
        f".band {{ fill: {band}; }}",
    ]
    rules += [f".p{i} {{ fill: {c}; stroke: {c}; }}" for i, c in enumerate(peers)]
    return " ".join(rules)


def _legend(svg: ElementTree.Element, axis: _Axis) -> None:
    for number, peer in enumerate(PEERS):
        x = _LEFT + 4 + number * 130
        _marker(svg, number, x, 18)
        _add(svg, "text", peer, x=x + 10, y=22)
    one = axis.x(1)
    _add(svg, "text", "\u2190 the peer is faster", x=one - 8, y=46, anchor="end", cls="quiet")
    _add(svg, "text", "tf-composite is faster \u2192", x=one + 8, y=46, cls="quiet")


def _labels(svg: ElementTree.Element, axis: _Axis, height: float) -> None:
    label = "time of the peer / time of tf-composite; marker: median, line: least to most"
    _add(svg, "text", label, x=_LEFT, y=height - 6, cls="quiet")
    for tick in axis.ticks():
        _add(svg, "text", f"{tick:g}", x=axis.x(tick), y=height - 24, anchor="middle", cls="quiet")


def _family(
    svg: ElementTree.Element, axis: _Axis, name: str, works: Sequence[Compared], top: float
) -> None:
    for tick in axis.ticks():
        cls = "one" if tick == 1 else "grid"
        _add(svg, "line", x1=axis.x(tick), x2=axis.x(tick), y1=top, y2=top + _ROW, cls=cls)
    label = _add(svg, "text", f"{name} ", x=16, y=top + _ROW / 2 + 4)
    _add(label, "tspan", f"({len(works)})", cls="quiet")
    for number, peer in enumerate(PEERS):
        some = ratios(works, peer)
        if not some:
            continue
        y = top + _ROW / 2 + (number - (len(PEERS) - 1) / 2) * _LANE
        _add(svg, "line", x1=axis.x(min(some)), x2=axis.x(max(some)), y1=y, y2=y, cls=f"p{number}")
        _marker(svg, number, axis.x(median(some)), y)


def _marker(svg: ElementTree.Element, peer: int, x: float, y: float) -> None:
    """A circle, a square, a diamond and a triangle: the peers differ without their colours too."""
    shapes = (
        None,
        ((-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)),
        ((0, -4.4), (4.4, 0), (0, 4.4), (-4.4, 0)),
        ((0, -4), (4, 3.4), (-4, 3.4)),
    )
    shape = shapes[peer]
    if shape is None:
        _add(svg, "circle", cx=x, cy=y, r=3.6, cls=f"p{peer}")
    else:
        points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in shape)
        _add(svg, "polygon", points=points, cls=f"p{peer}")


def _add(
    parent: ElementTree.Element,
    tag: str,
    text: str | None = None,
    *,
    cls: str | None = None,
    anchor: str | None = None,
    **attributes: float | str | None,
) -> ElementTree.Element:
    """A child element; numbers have one decimal, and what is None is left out."""
    told = {"class": cls, "text-anchor": anchor, **attributes}
    shown = {
        name: value if isinstance(value, str) else f"{value:.1f}"
        for name, value in told.items()
        if value is not None
    }
    child = ElementTree.SubElement(parent, tag, shown)
    child.text = text
    return child
