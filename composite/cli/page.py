"""`composite show --html`: the stages of an op side by side, in one page without other files.

Lines that come from one line of the source light up together: the MLIR of the op by its locations,
the nodes of a call by the places that they carry. What a kernel's loops come from is not known.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_ALIAS = re.compile(r'^(#loc\d*) = loc\((?:callsite\()?"([^"]*)":(\d+)')
_USE = re.compile(r'loc\((#loc\d*|"[^"]*":\d+:\d+)\)$')
_PLACE = re.compile(r"([^,\s]+?):(\d+)")

_HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
body {{ margin: 0; font: 14px/1.4 sans-serif }}
h1 {{ font-size: 1.1em; margin: .5em 1em }}
main {{ display: flex; gap: 1em; overflow-x: auto; padding: 0 1em }}
section {{ flex: none; max-width: 46em }}
pre {{ margin: 0; height: 85vh; overflow: auto; background: #f6f6f6; padding: .5em 0 }}
code {{ display: block; padding: 0 .5em; white-space: pre }}
code[data-line] {{ cursor: pointer }}
code.on {{ background: #ffe08a }}
</style>
<h1>{title}</h1>
<main>
"""
_TAIL = """</main>
<script>
const linked = document.querySelectorAll("code[data-line]");
function light(line, scroll) {
  const seen = new Set();
  for (const code of linked) {
    const same = code.dataset.line === line;
    code.classList.toggle("on", same);
    const pre = code.parentElement;
    if (same && scroll && !seen.has(pre)) {
      seen.add(pre);
      pre.scrollTop = code.offsetTop - pre.offsetTop - pre.clientHeight / 3;
    }
  }
}
for (const code of linked) {
  code.addEventListener("mouseenter", () => light(code.dataset.line, false));
  code.addEventListener("click", () => light(code.dataset.line, true));
}
</script>
</html>
"""


class Line(NamedTuple):
    """A line of a stage, and the line of the source that it comes from: "ops.py:12", or ""."""

    text: str
    source: str = ""


def page(title: str, stages: Mapping[str, Iterable[Line]]) -> str:
    """The page of these stages, in their order."""
    parts = [_HEAD.format(title=html.escape(title))]
    for name, lines in stages.items():
        parts.append(f"<section><h1>{html.escape(name)}</h1><pre>")
        parts += [_code(line) for line in lines]
        parts.append("</pre></section>\n")
    return "".join([*parts, _TAIL])


def _code(line: Line) -> str:
    link = f' data-line="{html.escape(line.source)}"' if line.source else ""
    return f"<code{link}>{html.escape(line.text) or ' '}</code>"


def plain(text: str) -> list[Line]:
    """The lines of a stage that has no places."""
    return [Line(line) for line in text.rstrip().splitlines()]


def numbered(text: str, file: str, first: int) -> list[Line]:
    """The lines of a source, the first of which has this number in its file."""
    lines = text.rstrip().splitlines()
    return [Line(f"{n:4} {line}", f"{file}:{n}") for n, line in enumerate(lines, first)]


def located(mlir: str) -> list[Line]:
    """The lines of a module, without its locations, by which they are linked."""
    lines = mlir.rstrip().splitlines()
    known = {m[1]: f"{m[2]}:{m[3]}" for line in lines if (m := _ALIAS.match(line))}
    found = []
    for line in lines:
        if line.startswith("#loc"):
            continue
        use = _USE.search(line)
        source = "" if use is None else known.get(use[1], "")
        found.append(Line(_USE.sub("", line).rstrip(), source))
    return found


def place(text: str) -> str:
    """The line of a place with a column, and of the call if it is one in an inlined function."""
    match = _PLACE.match(text)
    return f"{match[1]}:{match[2]}" if match else ""
