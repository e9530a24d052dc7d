"""A function's source, with the results of the analyses that run before translation.

It is analysed once, however many ops the function is inlined into.
Not for: translating it (statements.py), what its free names are bound to (capture.py).
"""

from __future__ import annotations

import dataclasses
import functools
import types
from typing import Any

from composite.compiler.frontend.analysis.desugar import desugar
from composite.compiler.frontend.analysis.liveness import Liveness
from composite.compiler.frontend.analysis.scopes import Scopes
from composite.compiler.source import Source


@dataclasses.dataclass(frozen=True, eq=False)
class Body:
    """The body of a function: of an op, of a helper, of a function or lambda in another body."""

    scopes: Scopes
    liveness: Liveness
    _inner: dict[Any, Body] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, scopes: Scopes) -> Body:
        """Return the body whose names are `scopes`."""
        return cls(scopes, Liveness(scopes.source.tree))

    @property
    def source(self) -> Source:
        """The text; its `tree` is the function."""
        return self.scopes.source

    @property
    def name(self) -> str:
        """The function's name."""
        return str(self.source.tree.name)

    def inner(self, node: Any) -> Body:
        """Return the body of a function or lambda in this one."""
        if node not in self._inner:
            self._inner[node] = Body.of(self.scopes.inner[node])
        return self._inner[node]


# Bounded, because a cache of functions keeps them alive; one of the library has a few hundred.
@functools.lru_cache(maxsize=1024)
def body_of(function: types.FunctionType) -> Body:
    """Return the body of a helper.

    Raises:
        CompositeSyntaxError, SourceNotFoundError, NotAFunctionError: as Source.of.
    """
    return Body.of(Scopes(desugar(Source.of(function))))
