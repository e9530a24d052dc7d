"""The source of one decorated function, and errors that point into it.

A Source keeps the text with the op, so that an edited file, a notebook cell that is gone, or code
from `exec` is reported as it was compiled. Places are the file's: line and column as an editor
shows them, and a file name relative to the root of its module, so that two machines agree.

Not for: what the code means (compiler.frontend); a leaf that imports neither MLIR nor TVM.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import linecache
import os
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, NoReturn

import gast

from composite.compiler.errors import Mistake, RefusedError
from composite.compiler.errors.sources import CHANGED, NO_DEF, NO_FUNCTION, NO_SOURCE, WRAPPED


class CompositeSyntaxError(SyntaxError):
    """What a body or a declaration says cannot be compiled; CPython prints it with a caret.

    Attributes:
        mistake: its entry in the catalogue, docs/errors.md.
        sentence: what is wrong, without the code and the places of calls.
        calls: where the function that it is in was called, the innermost call first.
        others: what else is wrong in the same op; `msg` shows them too.
        ends_translation: whether to go on would only repeat it.
    """

    mistake: Mistake
    sentence: str
    calls: tuple[str, ...]
    others: tuple[CompositeSyntaxError, ...]
    ends_translation = False

    @classmethod
    def of(
        cls,
        mistake: Mistake,
        sentence: str,
        details: tuple[Any, ...],
        calls: Sequence[str] = (),
        others: Sequence[CompositeSyntaxError] = (),
    ) -> CompositeSyntaxError:
        """Return the error for a case of a mistake; `details` are those of SyntaxError."""
        message = mistake.says("; ".join([sentence, *calls]))
        if others:
            count = "one more mistake" if len(others) == 1 else f"{len(others)} more mistakes"
            message = "\n\n".join([f"{message}, and {count}:", *(one.shown() for one in others)])
        error = cls(message, details)
        error.mistake, error.sentence = mistake, sentence
        error.calls, error.others = tuple(calls), tuple(others)
        return error

    @classmethod
    def together(cls, errors: Sequence[CompositeSyntaxError]) -> CompositeSyntaxError:
        """Return the first of the errors with the others, none of them twice."""
        alone: dict[Any, CompositeSyntaxError] = {}
        for error in errors:
            alone.setdefault((*error.args[1][:3], error.sentence), error)
        first, *others = alone.values()
        if not others:
            return first
        return cls.of(first.mistake, first.sentence, first.args[1], first.calls, others)

    @property
    def parts(self) -> tuple[CompositeSyntaxError, ...]:
        """The errors that it shows, each alone."""
        if not self.others:
            return (self,)
        return (self.of(self.mistake, self.sentence, self.args[1], self.calls), *self.others)

    def called_at(self, name: str, place: str) -> CompositeSyntaxError:
        """Return the error, one alone, with where the function that it is in was called."""
        calls = [*self.calls, f"`{name}` is called at {place}"]
        error = self.of(self.mistake, self.sentence, self.args[1], calls)
        error.ends_translation = self.ends_translation
        return error

    def shown(self) -> str:
        """Return the error in lines: its place and message, the source, a caret."""
        _, line, column, text, _, end = self.args[1]
        bare = text.strip()
        indent = len(text) - len(text.lstrip())
        caret = " " * (column - 1 - indent) + "^" * max(end - column, 1)
        return f"{self.filename}:{line}:{column}: {self.msg}\n    {bare}\n    {caret}"


class SourceNotFoundError(RefusedError, OSError):
    """The function has no source text that Python can find."""


class NotAFunctionError(RefusedError, TypeError):
    """What should be compiled is no plain function of Python."""


@dataclasses.dataclass(frozen=True)
class Source:
    """The source of a function.

    Attributes:
        function: the plain Python function.
        filename: the file as Python names it in tracebacks.
        file: the file relative to the root of its module: "package/ops.py".
        module: name of the module.
        lines: the text of the function, decorators included, with its line ends.
        first_line: 1-based number of lines[0] in the file.
        tree: the gast.FunctionDef, at the file's own lines and columns.
    """

    function: types.FunctionType
    filename: str
    file: str
    module: str
    lines: tuple[str, ...]
    first_line: int
    tree: Any

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Source:
        """Read the source of a function.

        Raises:
            SourceNotFoundError: if there is none.
            CompositeSyntaxError: if the function is not one `def`.
            NotAFunctionError: if `function` is not a Python function, a TypeError.
        """
        if not isinstance(function, types.FunctionType):
            raise NotAFunctionError(
                NO_FUNCTION, f"a composite is a Python function, not {function!r}"
            )
        if hasattr(function, "__wrapped__"):
            raise NotAFunctionError(
                WRAPPED,
                f"`{function.__name__}` is wrapped by another decorator, whose effect would be "
                "lost; put @Composite next to the `def`, and call helpers that are not wrapped",
            )
        filename = _file_of(function)
        lines, first_line = _lines_of(function, filename)
        source = cls(
            function=function,
            filename=filename,
            file=_relative_file(function, filename),
            module=function.__module__ or "",
            lines=tuple(lines),
            first_line=first_line,
            tree=None,
        )
        return dataclasses.replace(source, tree=_parse(source))

    @property
    def text(self) -> str:
        """The source text."""
        return "".join(self.lines)

    @property
    def place(self) -> str:
        """Where the function is defined: "package/ops.py:12"."""
        return f"{self.file}:{self.tree.lineno}"

    def position(self, node: Any) -> tuple[int, int]:
        """Return the 1-based line and column of a node."""
        return node.lineno, self._column(node.lineno, node.col_offset)

    def locate(self, node: Any) -> str:
        """Return "package/ops.py:12:5" for a node."""
        line, column = self.position(node)
        return f"{self.file}:{line}:{column}"

    def fail(self, node: Any, mistake: Mistake, message: str) -> NoReturn:
        """Raise a CompositeSyntaxError at a node."""
        raise self.error(node, mistake, message)

    def error(self, node: Any, mistake: Mistake, message: str) -> CompositeSyntaxError:
        """Return the error at a node: file, line, column, end and text as CPython's own."""
        line, column = self.position(node)
        text = self._line(line)
        end_line, end_column = line, len(text.rstrip("\n")) + 1
        if node.end_lineno == line and node.end_col_offset is not None:
            end_column = self._column(line, node.end_col_offset)
        details = (self.filename, line, column, text, end_line, end_column)
        return CompositeSyntaxError.of(mistake, message, details)

    def _line(self, line: int) -> str:
        return self.lines[line - self.first_line]

    def _column(self, line: int, byte_offset: int) -> int:
        """Python counts columns of its syntax trees in bytes of UTF-8, editors in characters."""
        text = self._line(line)
        if text.isascii():
            return min(byte_offset, len(text)) + 1
        before = text.encode()[:byte_offset]
        return len(before.decode(errors="replace")) + 1


def _file_of(function: types.FunctionType) -> str:
    """Return the file of the text; that of a .pyc that was moved lies beside it."""
    filename = function.__code__.co_filename
    module_file = str(function.__globals__.get("__file__") or "")
    beside = module_file.removesuffix("c")
    if module_file.endswith(".pyc") and PurePath(beside).name == PurePath(filename).name:
        return beside if not os.path.exists(filename) and os.path.exists(beside) else filename
    return filename


def _lines_of(function: types.FunctionType, filename: str) -> tuple[list[str], int]:
    """Return the lines of the function and the number of the first.

    The function's globals tell the module. `inspect` takes the one that is imported by that name,
    which may be another one.
    """
    first_line = max(function.__code__.co_firstlineno, 1)
    linecache.checkcache(filename)
    lines = linecache.getlines(filename, function.__globals__)[first_line - 1 :]
    try:
        block = inspect.getblock(lines)
    except SyntaxError:  # the file has changed so that no function starts at that line
        block = []
    if not block:
        code = function.__code__
        raise SourceNotFoundError(
            NO_SOURCE,
            f"the source of `{function.__qualname__}` ({code.co_filename}:{code.co_firstlineno}) "
            "was not found; a composite is compiled from its text: define it in a file or a "
            "notebook cell, or register the text of `exec` in linecache",
        )
    return block, first_line


def _parse(source: Source) -> Any:
    if source.function.__name__ == "<lambda>":
        raise _not_a_def(source)
    indented = source.lines[0][:1].isspace()
    # Under an `if` an indented function parses as it stands: no text, and no column, is moved.
    lines_before = source.first_line - 1 - indented
    text = "\n" * lines_before + ("if True:\n" if indented else "") + source.text
    try:
        module = ast.parse(text, source.filename)
    except SyntaxError as error:
        raise _not_a_def(source) from error
    if lines_before < 0:  # no line stands before it, though it is indented
        ast.increment_lineno(module, lines_before)
    tree = gast.ast_to_gast(module)
    statements = tree.body[0].body if indented else tree.body
    definition = statements[0]
    if not isinstance(definition, gast.FunctionDef):
        raise _not_a_def(source)
    code = source.function.__code__
    names = code.co_varnames[: code.co_argcount]
    if definition.name != source.function.__name__ or names != tuple(
        argument.id for argument in definition.args.posonlyargs + definition.args.args
    ):
        raise SourceNotFoundError(
            CHANGED,
            f"{source.filename}:{source.first_line} is no longer `{source.function.__name__}`: the "
            "file has changed since it was imported; import it again",
        )
    return definition


def _not_a_def(source: Source) -> CompositeSyntaxError:
    text = source.lines[0]
    column = len(text) - len(text.lstrip()) + 1
    return CompositeSyntaxError.of(
        NO_DEF,
        "a composite, and a function that it calls, is written with `def`; give the lambda or "
        "coroutine one",
        (
            source.filename,
            source.first_line,
            column,
            text,
            source.first_line,
            len(text.rstrip()) + 1,
        ),
    )


def _relative_file(function: types.FunctionType, filename: str) -> str:
    """Keep as many parts of the path as the module's name has: "a.b.ops" in /x/a/b/ops.py."""
    if filename.startswith("<"):
        return filename
    path = PurePath(filename)
    parts = _module_name(function).split(".")
    if path.stem == "__init__":
        parts.append("__init__")
    tail = path.with_suffix("").parts[-len(parts) :]
    return "/".join(path.parts[-len(parts) :]) if list(tail) == parts else path.name


def _module_name(function: types.FunctionType) -> str:
    name = function.__module__ or ""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    # `python -m package.ops` runs the module as __main__; its spec still knows the name.
    return spec.name if spec is not None else name
