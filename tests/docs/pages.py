"""A page of the documentation as a program: its code runs in order, what it prints is compared.

- A `python` block runs in the page's one namespace. One whose first line is a comment with the name
  of a file, `# ops.py`, is that file, in a folder of the page's own.
- A `console` block has commands, after `$ `, and what they print. `composite` runs in this process,
  the rest in a shell. Of `make`, `pip` and `python -m` it is looked up whether there is what they
  are told to make, install and run.
- A `text` block that follows a `python` block is what that prints.
- `<!-- examples continue README.md -->` has the page begin with the names and files of another.

Numbers are equal to any others. `...` stands for anything. Where nothing is shown, nothing is
compared. Not for: `pycon` blocks, which are doctests (test_language.py).
"""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import ROOT, environment

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CONTINUES = re.compile(r"<!-- examples continue (\S+) -->")
_FILE = re.compile(r"# ([\w./]+\.\w+)\n")
# Which path is faster is another answer on each machine; that it was measured is not.
_VERDICT = re.compile(r"(kernel|expansion): (kernel \w+ for shapes .*|the kernel was not faster.*)")


class Block(NamedTuple):
    """A fenced block: its language, its text, and where that begins and ends in the page."""

    kind: str
    text: str
    start: int
    end: int


class Output(NamedTuple):
    """What a page shows at a place, and what came."""

    start: int
    end: int
    shown: str
    came: str

    def agrees(self) -> bool:
        """Whether that is the same, but for numbers and what was measured."""
        checker = doctest.OutputChecker()
        return checker.check_output(normal(self.shown), normal(self.came), doctest.ELLIPSIS)


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page that have a language, in their order."""
    return [Block(m[1], m[2], m.start(2), m.end(2)) for m in _BLOCK.finditer(text)]


def normal(text: str) -> str:
    """What is compared of an output: no numbers, no widths, no rules of tables."""
    text = _VERDICT.sub("what was measured", text)
    text = re.sub(r"\b[0-9a-f]{12,}\b|(?<=_)[0-9a-f]{16}", "HASH", text)
    text = re.sub(r"\d[\d.]*(e[-+]?\d+)?", "N", text)
    text = re.sub(r"(?<=\s)(equal|-)(?=\s)", "N", text)  # an error that is none
    lines = [" ".join(line.split()) for line in text.splitlines() if not re.search("[━─]", line)]
    return "\n".join(line for line in lines if line) + "\n"


class Page:
    """One page, run once in this process."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.text = (ROOT / name).read_text(encoding="utf-8")
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": Path(name).stem}
        self.outputs: list[Output] = []
        self.commands: list[str] = []

    def run(self, earlier: Callable[[str], Page]) -> None:
        """Runs the blocks; `earlier` gives another page, which was run."""
        if continues := _CONTINUES.search(self.text):
            page = earlier(continues[1])
            self.names |= page.names
            self.folder = page.folder
        found = blocks(self.text)
        with self._place():
            for block, after in zip(found, [*found[1:], None], strict=True):
                if block.kind == "python":
                    printed = self._python(block)
                    follows = after and not self.text[block.end + 4 : after.start - 8].strip()
                    if after is not None and follows and after.kind == "text":
                        self._compare(after.start, after.end, printed)
                elif block.kind == "console":
                    self._console(block)

    def mismatches(self) -> list[Output]:
        """The outputs that are not what the page shows."""
        return [output for output in self.outputs if not output.agrees()]

    def corrected(self) -> str:
        """The page with the outputs that came; one with `...` in it stays if it agrees."""
        text = self.text
        for output in reversed(self.outputs):
            if "..." not in output.shown or not output.agrees():
                text = text[: output.start] + output.came.rstrip() + "\n" + text[output.end :]
        return text

    @contextlib.contextmanager
    def _place(self) -> Iterator[None]:
        """In the page's folder, from which modules are imported and then forgotten."""
        before, path = Path.cwd(), list(sys.path)
        os.chdir(self.folder)
        sys.path.insert(0, str(self.folder))
        try:
            yield
        finally:
            os.chdir(before)
            sys.path[:] = path
            for name, module in list(sys.modules.items()):
                if str(getattr(module, "__file__", None)).startswith(str(self.folder)):
                    del sys.modules[name]

    def _python(self, block: Block) -> str:
        if file := _FILE.match(block.text):
            path = self.folder / file[1]
            path.write_text(block.text[file.end() :].lstrip("\n"), encoding="utf-8")
            os.utime(path, (0, 0))  # written before this process began, as a build wants to see
            return ""
        # At its lines in the page: an error says where, and the source of an op is found.
        above = self.text[: block.start].count("\n")
        source = "\n" * above + block.text
        self._remember(above, block.text)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, self.name, "exec"), self.names)
        return printed.getvalue()

    def _remember(self, above: int, text: str) -> None:
        """The blocks that ran, as a file for `inspect`; what is between them is not Python."""
        known = linecache.cache.get(self.name)
        lines = list(known[2]) if known is not None and len(known) == 4 else []
        lines += ["\n"] * (above - len(lines))
        lines[above:] = text.splitlines(keepends=True)
        linecache.cache[self.name] = (len(lines), None, lines, self.name)

    def _console(self, block: Block) -> None:
        command, output, start = "", "", block.start
        at = block.start
        for line in [*block.text.splitlines(keepends=True), "$ "]:
            if line.startswith("$ "):
                if command:
                    came = self._command(command)
                    if output and came is not None:
                        self._compare(start, at, came)
                command, output, start = line[2:], "", at + len(line)
            elif command.endswith("\\\n"):
                command, start = command + line, at + len(line)
            else:
                output += line
            at += len(line)

    def _command(self, command: str) -> str | None:
        """Runs a command; what it prints, or None where it is only looked up."""
        self.commands.append(command)
        words = shlex.split(command, comments=True)
        if words[0] == "make":
            looked_up(words[1], "Makefile", rf"^{re.escape(words[1])}:")
            return None
        if words[:2] == ["pip", "install"]:
            for extra in re.findall(r"[\w-]+", words[2].partition("[")[2]):
                looked_up(extra, "pyproject.toml", rf"^{extra} = \[")
            return None
        if words[:2] == ["python", "-m"]:
            for option in filter(re.compile("--").match, words):
                looked_up(option, f"{words[2].replace('.', '/')}/__main__.py", f'"{option}"')
            return None
        if words[0] == "composite":
            return in_process(words[1:])
        return self._shell(command)

    def _shell(self, command: str) -> str:
        shim = self.folder / "bin" / "composite"
        if not shim.exists():
            shim.parent.mkdir()
            shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m composite "$@"\n')
            shim.chmod(0o755)
        tools = [str(shim.parent), str(Path(sys.executable).parent), os.environ["PATH"]]
        env = environment() | {"PATH": os.pathsep.join(tools)}
        done = subprocess.run(
            ["bash", "-c", command], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"$ {command}{done.stdout}{done.stderr}"
        return done.stdout

    def _compare(self, start: int, end: int, came: str) -> None:
        self.outputs.append(Output(start, end, self.text[start:end], came))


def looked_up(what: str, file: str, pattern: str) -> None:
    """AssertionError unless a file of the project has a line."""
    text = (ROOT / file).read_text(encoding="utf-8")
    assert re.search(pattern, text, re.MULTILINE), f"{file} has no {what}"


def in_process(args: list[str]) -> str:
    """What `composite` prints; AssertionError unless it ends well."""
    from click.testing import CliRunner

    from composite.cli.main import main

    done = CliRunner().invoke(main, args)
    assert done.exit_code == 0, f"$ composite {shlex.join(args)}\n{done.output}"
    return done.output
