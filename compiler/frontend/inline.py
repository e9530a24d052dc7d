"""Inlining: a function that a body calls is translated at the call, in a scope of its own.

Locations and errors of a helper are those of its own file, with the place of the call beside them.
Those of a function of the library are at the author's call, which is what the author can change.
A `return` before the end is translated as in a body, see continuation.py.

Not for: which function is called (callables.py), matching arguments (arguments.py).
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from composite.compiler.errors.names import ENDLESS, TOO_MANY_CALLS
from composite.compiler.frontend.bindings import Caller, Translation
from composite.compiler.frontend.callables import Callee
from composite.compiler.frontend.calls import Resolve
from composite.compiler.frontend.exits import ResultExit
from composite.compiler.frontend.expressions import Expressions
from composite.compiler.frontend.specialization import Call
from composite.compiler.frontend.statements import Statements
from composite.compiler.source import CompositeSyntaxError
from composite.compiler.tfr import Place

# Nested calls. Python's stack, of a thousand frames by default, has room for about twice as many.
MOST_NESTED = 16
MOST_CALLS = 5_000


class Inliner:
    """Inlines the calls of one op; `serials` tells the shared continuations of its module apart."""

    def __init__(self, resolve: Resolve) -> None:
        self.resolve = resolve
        self.serials = itertools.count()
        self._calls = 0
        self._endless: CompositeSyntaxError | None = None

    def inline(self, caller: Translation, node: Any, callee: Callee, bound: dict[str, Any]) -> Any:
        """Translate a function where it is called.

        Args:
            caller: the translation of the function that calls.
            node: the gast.Call.
            callee: the function.
            bound: the bindings of its parameters that are given.

        Returns:
            The binding of its result.

        Raises:
            CompositeSyntaxError: what is wrong in the function, with the place of the call; a
                recursion that does not end.
        """
        self._count(caller, node, callee)
        place = _place(caller, node, callee)
        if callee.in_library or caller.in_library:
            return self._specialized(caller, node, callee, bound, place)
        return self._translated(caller, node, callee, bound, place)

    def _specialized(
        self, caller: Translation, node: Any, callee: Callee, bound: dict[str, Any], place: Place
    ) -> Any:
        """Translate a function of the library, or build again what an equal call has built."""
        call = Call.of(caller, callee.function, bound)
        if call is None:
            return self._translated(caller, node, callee, bound, place)
        earlier = call.find()
        if earlier is not None and self._calls + earlier.inlined <= MOST_CALLS:
            self._calls += earlier.inlined
            return earlier.build(caller.builder, place, call)
        before = self._calls
        with caller.builder.recording() as recording:
            result = self._translated(caller, node, callee, bound, place)
        inlined = self._calls - before
        call.remember(caller.builder, recording, place, result, inlined)
        return result

    def _translated(
        self, caller: Translation, node: Any, callee: Callee, bound: dict[str, Any], place: Place
    ) -> Any:
        function, in_library = callee.function, callee.in_library or caller.in_library
        translation = Translation(
            function.body,
            caller.builder,
            {**function.captured, **function.defaults, **bound},
            Caller(caller, place, in_library),
        )
        expressions = Expressions(translation, self)
        exit_ = ResultExit(translation, expressions)
        try:
            (result,) = Statements(translation, expressions, exit_, self.serials).body()
        except CompositeSyntaxError as error:
            if error is self._endless:
                raise
            # The library reports one mistake of a call; others follow from the same arguments.
            errors = error.parts[:1] if callee.in_library else error.parts
            parts = [_from_caller(one, caller, node, callee) for one in errors]
            raise CompositeSyntaxError.together(parts) from error
        return result

    def _count(self, caller: Translation, node: Any, callee: Callee) -> None:
        self._calls += 1
        name = callee.signature.spelling
        if caller.depth >= MOST_NESTED:
            self._endless = caller.source.error(node, ENDLESS, _too_deep(caller, callee))
            self._endless.ends_translation = True
            raise self._endless
        if self._calls > MOST_CALLS:
            error = caller.source.error(
                node,
                TOO_MANY_CALLS,
                f"`{name}` is the call number {MOST_CALLS + 1} that is inlined into one op: make "
                "the larger helpers composites",
            )
            error.ends_translation = True
            raise error


def _place(caller: Translation, node: Any, callee: Callee) -> Place:
    """Return the place of the ops of a call; a function of the library is named in it."""
    place = caller.place(node)
    if callee.in_library and not caller.in_library:
        return dataclasses.replace(place, within=callee.signature.spelling)
    return place


def _from_caller(
    error: CompositeSyntaxError, caller: Translation, node: Any, callee: Callee
) -> CompositeSyntaxError:
    """Return an error of an inlined function with the place of the call added."""
    name = callee.signature.spelling
    if caller.in_library:
        return error
    if callee.in_library:
        return caller.source.error(node, error.mistake, f"{name}: {error.sentence}")
    return error.called_at(name, caller.source.locate(node))


def _too_deep(caller: Translation, callee: Callee) -> str:
    bodies, place = [callee.function.body], ""
    translation: Translation | None = caller
    while translation is not None and translation.caller is not None:
        bodies.insert(0, translation.body)
        place = _text(translation.caller.place)
        translation = translation.caller.translation
    earlier = [index for index, body in enumerate(bodies[:-1]) if body is bodies[-1]]
    names = " -> ".join(body.name for body in bodies[max(earlier, default=0) :])
    if not earlier:
        return f"calls are nested deeper than {MOST_NESTED}: {names}; the first is at {place}"
    return (
        f"`{bodies[-1].name}` calls itself without end: {names}, {MOST_NESTED} calls deep, the "
        f"first at {place}; a recursion ends only where constants decide an `if`"
    )


def _text(place: Place) -> str:
    return f"{place.file}:{place.line}:{place.column}"
