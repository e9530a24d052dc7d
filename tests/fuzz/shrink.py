"""Makes a program that shows a difference smaller, while it shows the same one.

Statements are deleted or replaced by their blocks, expressions by their parts. Only functions of
the program are touched, not the two that every program has; nor what counts the trips of a `while`,
which would go on without it.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import time
from collections.abc import Callable, Iterator

from tests.fuzz.program import Program

_FIXED = ("total", "add_up")
_TRIES = 600
_SECONDS = 300.0  # after which no other program is tried


def shrink(program: Program, same: Callable[[Program, int], bool]) -> Program:
    """The smallest program found for which `same(program, version)` still holds."""
    tries, end = 0, time.monotonic() + _SECONDS
    progress = True
    while progress:
        progress = False
        for text in _smaller(program.text):
            tries += 1
            if tries > _TRIES or time.monotonic() > end:
                return program
            candidate = dataclasses.replace(program, text=text)
            if same(candidate, tries):
                program, progress = candidate, True
                break
    return program


def _smaller(text: str) -> Iterator[str]:
    """Smaller texts, the much smaller ones first."""
    tree = ast.parse(text)
    count = sum(1 for _ in _edits(tree))
    for number in range(count):
        made = copy.deepcopy(tree)
        for n, edit in enumerate(_edits(made)):
            if n == number:
                edit()
                break
        shorter = ast.unparse(ast.fix_missing_locations(made)) + "\n"
        if len(shorter) < len(text) and shorter != text:
            yield shorter


def _edits(tree: ast.Module) -> Iterator[Callable[[], None]]:
    """Each way to make the tree smaller, as a function that does it."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    mine = [node for node in functions if node.name not in _FIXED]
    for function in mine[:-1]:
        yield lambda f=function: tree.body.remove(f)  # type: ignore[misc]
    for function in mine:
        for node in ast.walk(function):
            yield from _statement_edits(node)
    for function in mine:
        loops = [node for node in ast.walk(function) if isinstance(node, ast.While)]
        kept = {part for loop in loops for part in (loop, *ast.walk(loop.test))}
        for statement in function.body:
            for node in ast.walk(statement):
                if node not in kept:
                    yield from _expression_edits(node)


def _statement_edits(node: ast.AST) -> Iterator[Callable[[], None]]:
    for field in ("body", "orelse"):
        block = getattr(node, field, None)
        if not isinstance(block, list):
            continue
        for index, statement in enumerate(block):
            if _counts(node, index):
                continue
            if len(block) > 1 or field == "orelse":
                yield lambda b=block, i=index: b.pop(i)  # type: ignore[misc]
            for inner in ("body", "orelse"):
                if not isinstance(statement, ast.FunctionDef) and getattr(statement, inner, None):
                    yield lambda b=block, i=index, s=statement, f=inner: b.__setitem__(  # type: ignore[misc]
                        slice(i, i + 1), getattr(s, f)
                    )


def _counts(node: ast.AST, index: int) -> bool:
    """Whether a statement of a node's body counts the trips of the loop that it is."""
    return isinstance(node, ast.While) and index == 0 and isinstance(node.body[0], ast.AugAssign)


def _expression_edits(node: ast.AST) -> Iterator[Callable[[], None]]:
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.expr) and not isinstance(value, ast.Name | ast.Constant):
            for part in _parts(value):
                yield lambda n=node, f=field, p=part: setattr(n, f, p)  # type: ignore[misc]
        elif isinstance(value, list) and field in ("args", "elts", "values", "comparators"):
            for index, item in enumerate(value):
                if isinstance(item, ast.expr) and not isinstance(item, ast.Name | ast.Constant):
                    for part in _parts(item):
                        yield lambda v=value, i=index, p=part: v.__setitem__(i, p)  # type: ignore[misc]


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    """Names that may stand for an expression, then its own parts."""
    for name in ("x", "k"):
        yield ast.Name(name, ast.Load())
    for child in ast.iter_child_nodes(value):
        if isinstance(child, ast.expr):
            yield child
