"""Error recovery: translation goes on after a mistake, so that one compilation reports all of them.

A statement with a mistake is given up, and the next one is translated. The names that it would have
bound are unknown from there on: a statement that reads one is given up silently, since whatever is
wrong with it may follow from the mistake that was reported.

Not for: errors of the compiler itself, which pass through.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import gast

from composite.compiler.source import CompositeSyntaxError


class UnknownError(Exception):
    """A name is read that has no value, because of a mistake that is noted."""


class Mistakes:
    """The mistakes of one function.

    Attributes:
        given_up: the statements, and the conditions, that hold one.
        unknown: the names that have no value because of one.
    """

    def __init__(self) -> None:
        self.given_up: set[Any] = set()
        self.unknown: set[str] = set()
        self._noted: list[tuple[tuple[int, int], CompositeSyntaxError]] = []

    def __bool__(self) -> bool:
        return bool(self._noted)

    def later(self) -> Mistakes:
        """Return the mistakes that the next pass starts with; it finds the unknown names again."""
        made = Mistakes()
        made.given_up.update(self.given_up)
        made._noted.extend(self._noted)
        return made

    def note(self, node: Any, error: CompositeSyntaxError) -> None:
        """Note the error, or the errors, at a node or in it."""
        # A traceback would keep values of the IR alive that are destroyed at the end.
        error = error.with_traceback(None)
        error.__cause__ = error.__context__ = None
        self._noted.append(((node.lineno, node.col_offset), error))

    @contextlib.contextmanager
    def beyond(self, node: Any) -> Iterator[None]:
        """Go on after the `with` on a mistake in it; what the node binds is unknown then."""
        try:
            yield
        except CompositeSyntaxError as error:
            if error.ends_translation:
                raise
            self.note(node, error)
        except UnknownError:
            pass
        else:
            return
        self.give_up(node)

    def give_up(self, node: Any) -> None:
        """Mark the names that a node binds as unknown."""
        self.given_up.add(node)
        self.unknown.update(bound_in(node))

    def raise_all(self) -> None:
        """Raise one error that shows all mistakes in the order of the text, if there are any.

        Raises:
            CompositeSyntaxError: the first, with the others.
        """
        if self._noted:
            ordered = sorted(self._noted, key=lambda one: one[0])
            errors = [part for _, error in ordered for part in error.parts]
            raise CompositeSyntaxError.together(errors)


def bound_in(node: Any) -> tuple[str, ...]:
    """Return the names that a node binds, in whatever syntax, each once."""
    return tuple(dict.fromkeys(name for part in _own(node) for name in _binds(part)))


def _own(node: Any) -> Iterator[Any]:
    """Yield the nodes of the scope that a node stands in."""
    yield node
    if isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef, gast.Lambda)):
        return
    for child in gast.iter_child_nodes(node):
        yield from _own(child)


def _binds(node: Any) -> Iterator[str]:
    if isinstance(node, gast.Name) and not isinstance(node.ctx, gast.Load):
        yield node.id
    elif isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef)):
        yield node.name
    elif isinstance(node, gast.alias):
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(node, (gast.MatchAs, gast.MatchStar)) and node.name:
        yield str(node.name)
    elif isinstance(node, gast.MatchMapping) and node.rest:
        yield str(node.rest)
    elif isinstance(node, (gast.Global, gast.Nonlocal)):
        yield from node.names
