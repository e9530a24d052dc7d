"""Which names are bound at a point of a function, on the paths that lead there.

Not for: going over the function, and what is wrong where a name is not bound (scopes.py).
"""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass
class Paths:
    """What is bound here: on every path (None), or on some only, because of that gast node.

    `captured` gives for a name the function that has taken its value; `ended` says that every path
    has returned: what follows is never run.
    """

    bound: dict[str, Any]
    captured: dict[str, Any]
    ended: bool = False

    def copy(self) -> Paths:
        """Return paths that go on from here."""
        return Paths(dict(self.bound), dict(self.captured), self.ended)

    def after_branches(self, node: Any, then: Paths, otherwise: Paths) -> Paths:
        """Return what holds after the gast.If that is here, whose branches end so."""
        captured = {**then.captured, **otherwise.captured}
        if self.ended or (then.ended and otherwise.ended):
            return Paths({**then.bound, **otherwise.bound}, captured, ended=True)
        if then.ended or otherwise.ended:
            return otherwise if then.ended else then
        bound = {}
        for name in dict.fromkeys([*then.bound, *otherwise.bound]):
            ends = [paths.bound.get(name, node) for paths in (then, otherwise)]
            bound[name] = next((end for end in ends if end is not None), None)
        return Paths(bound, captured)

    def after_loop(self, node: Any, trip: Paths) -> Paths:
        """Return what holds after the loop that is here, of which a trip ends so."""
        # What the next trip binds again, a function of this one may have taken.
        bound = {name: self.bound.get(name, node) for name in trip.bound}
        return Paths(bound, trip.captured, self.ended)
