"""`composite show --html`: the stages of an op side by side, in one page without other files.

Lines that come from one line of the source light up together: the MLIR of the op by its locations,
the nodes of a call by the places that they carry, the tensors of a kernel by the nodes that they
are made for. What its loops come from is not known.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import NamedTuple

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_USE = re.compile(r" loc\((#loc\d*|\"[^\"]*\":\d+:\d+)\)")
# The last of a location: of a call in an inlined function that is the call.
_LAST = re.compile(r'.*(?:"([^"]*)":(\d+):\d+|(#loc\d*))')
# What the assembler is told beside instructions and data: unwinding, places, types.
_DIRECTIVE = re.compile(r"\s*\.(cfi_|loc\s|file\s|type\s|size\s|p2align\s|Ltmp|Lfunc_)")
_PLACE = re.compile(r"([^,\s]+?):(\d+)")

# What a stage is, for readers who see it for the first time, and the language of its text.
_STAGES = {
    "source": ("what was written", "python"),
    "mlir": ("the op as it was compiled, of any dtypes and shapes", ""),
    "graph": ("TensorFlow's ops for this call", ""),
    "te": ("the kernel's tensors, and the loops that compute them", ""),
    "tir": ("the kernel's loops, scheduled", "python"),
    "asm": ("machine code", "gas"),
}
_HEADER = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
{css}</style></head>
<body>
<header><h1>{title}</h1>
<p>{place} Lines with the same number and colour come from that line of the source: point at one to
see the others, click it to bring them into view, <kbd>Esc</kbd> lets go.</p></header>
<main>
"""
_FOOTER = """</main>
<script>
{js}</script>
</body>
</html>
"""


class Line(NamedTuple):
    """A line of a stage, and the line of the source that it comes from: "ops.py:12", or ""."""

    text: str
    source: str = ""


def page(title: str, stages: Mapping[str, Iterable[Line]], place: str = "") -> str:
    """The page of these stages, in their order; `place` is where the op is written."""
    where = f"{html.escape(place)}." if place else ""
    own = resources.files(__package__)
    css, js = (own.joinpath(f"page.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    parts = [_HEADER.format(title=html.escape(title), place=where, css=css)]
    texts = {name: list(lines) for name, lines in stages.items()}
    # A colour for each line of the source that something was made of, in the order of the stages.
    made = [line.source for name, lines in texts.items() for line in lines if name != "source"]
    colours = {place: number for number, place in enumerate(dict.fromkeys(made)) if place}
    parts += [_section(name, lines, colours) for name, lines in texts.items()]
    return "".join([*parts, _FOOTER.format(js=js)])


def _section(name: str, lines: list[Line], colours: Mapping[str, int]) -> str:
    what, language = _STAGES.get(name, ("", ""))
    texts = _coloured("\n".join(line.text for line in lines), language)
    body = []
    for line, text in zip(lines, texts, strict=True):
        number = line.source.rpartition(":")[2]
        shown = f' data-number="{number}"' if number else ""
        if name == "source":
            shown += f' id="L{number}"'
        if line.source in colours:
            place = html.escape(line.source)
            shown += f' data-line="{place}" title="{place}" style="--n:{colours[line.source]}"'
            shown += ' tabindex="0"' if name == "source" else ""
        body.append(f"<code{shown}>{text or ' '}</code>")
    small = f"<small>{html.escape(what)}</small>" if what else ""
    return f"<section><h2>{html.escape(name)}{small}</h2><pre>{''.join(body)}</pre></section>\n"


def _coloured(text: str, language: str) -> list[str]:
    """The lines of a text as HTML, with the classes of Pygments where it knows the language."""
    if not language:
        return [html.escape(line) for line in text.split("\n")]
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    return str(highlight(text, lexer, HtmlFormatter(nowrap=True))).removesuffix("\n").split("\n")


def plain(text: str) -> list[Line]:
    """The lines of a stage that has no places."""
    return [Line(line) for line in text.rstrip().splitlines()]


def numbered(text: str, file: str, first: int) -> list[Line]:
    """The lines of a source, the first of which has this number in its file."""
    lines = text.rstrip().splitlines()
    return [Line(line, f"{file}:{n}") for n, line in enumerate(lines, first)]


def located(mlir: str) -> list[Line]:
    """The lines of a module, without its locations, by which they are linked."""
    lines = mlir.rstrip().splitlines()
    known = {m[1]: m[2] for line in lines if (m := _ALIAS.match(line))}
    found = []
    for line in lines:
        if not line.startswith("#loc"):
            uses = _USE.findall(line)
            source = _source(uses[-1], known) if uses and line.endswith(f"loc({uses[-1]})") else ""
            found.append(Line(_USE.sub("", line).rstrip(), source))
    return found


def _source(location: str, known: Mapping[str, str]) -> str:
    """The line that a location names: "ops.py:12"; "" for an unknown one."""
    while last := _LAST.match(location):
        if last[1]:
            return f"{last[1]}:{last[2]}"
        location = known.get(last[3], "")
    return ""


def instructions(asm: str) -> list[Line]:
    """The lines of machine code that a reader looks for: no notes to debuggers."""
    code = re.split(r"^\s*\.section\s+\.debug_", asm, maxsplit=1, flags=re.MULTILINE)[0]
    return [Line(line.expandtabs(8)) for line in code.splitlines() if not _DIRECTIVE.match(line)]


def place(text: str) -> str:
    """The line of a place with a column, and of the call if it is one in an inlined function."""
    match = _PLACE.match(text)
    return f"{match[1]}:{match[2]}" if match else ""
