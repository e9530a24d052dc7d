"""Errors as scripts and people get them: an exit code, and one message.

Not for: errors of the command line itself, which click tells (code 2).
"""

from __future__ import annotations

import ast
import errno
import os
import sysconfig
import traceback
from pathlib import Path
from typing import NamedTuple

from composite.aot.installed import is_installed

INPUT = 1
DIFFERS = 3
MACHINE = 4
INTERNAL = 70
INTERRUPTED = 130

_MACHINE_ERRORS = frozenset(
    getattr(errno, name)
    for name in ("EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "EFBIG", "EIO")
)
_INPUT_ERRORS = (OSError, ValueError, TypeError, LookupError, ImportError)


class Failure(NamedTuple):
    """How a command ends."""

    code: int
    message: str


def told(error: Exception) -> Failure:
    """The failure that an exception is."""
    if isinstance(error, SyntaxError):
        return Failure(INPUT, _syntax(error))
    if isinstance(error, OSError) and error.strerror and error.filename:
        code = MACHINE if error.errno in _MACHINE_ERRORS else INPUT
        return Failure(code, f"{error.filename}: {error.strerror}")
    if isinstance(error, OSError) and error.errno in _MACHINE_ERRORS:
        return Failure(MACHINE, str(error.strerror))
    if (author := _authors_place(error)) is not None:
        return Failure(INPUT, f"{author}: {type(error).__name__}: {_sentence(error)}")
    if _is_a("LinkError", error):  # no C compiler, or no room for what it writes
        return Failure(MACHINE, str(error))
    if isinstance(error, _INPUT_ERRORS) or _is_a("OpError", error):
        return Failure(INPUT, _sentence(error))
    return Failure(
        INTERNAL,
        f"an error in composite itself, {type(error).__name__}: {_sentence(error)}\n"
        "`composite --debug ...` shows where; please report it",
    )


def _syntax(error: SyntaxError) -> str:
    """As CPython prints it, without the traceback, and with the function that it is in."""
    text = "".join(traceback.format_exception_only(error)).strip()
    function = _function_at(error.filename, error.lineno)
    return f"in `{function}`:\n  {text}" if function else text


def _function_at(file: str | None, line: int | None) -> str | None:
    """The function of a file that a line, or its decorator, belongs to."""
    try:
        tree = ast.parse(Path(file or "").read_bytes())
    except (OSError, SyntaxError):
        return None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            if line is not None and first <= line <= (node.end_lineno or first):
                return node.name
    return None


def _sentence(error: Exception) -> str:
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    return str(getattr(error, "message", None) or error) or type(error).__name__


def _is_a(name: str, error: Exception) -> bool:
    """Whether an error is of a class of this name, whose module is not imported for that."""
    return any(c.__name__ == name for c in type(error).__mro__)


def _authors_place(error: Exception) -> str | None:
    """Where in the author's files an error was raised; None when it was not raised below one."""
    ours = Path(__file__).resolve().parents[1]
    roots = [ours, ours.parent / "compiler", Path(sysconfig.get_path("scripts")).resolve()]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(os.path.realpath(frame.filename))
        if file.suffix != ".py" or is_installed(frame.filename):
            continue
        if not any(file.is_relative_to(root) for root in roots):
            return f"{frame.filename}:{frame.lineno}"
    return None
