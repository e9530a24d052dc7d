"""Which names are bound at a point of a function, on all paths that lead there or on some.

Not for: the walk over the function, and the errors about names that are not bound (scopes.py).
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
        """Return a copy that can be changed without changing this one."""
        return Paths(dict(self.bound), dict(self.captured), self.ended)

    def after_branches(self, node: Any, then: Paths, otherwise: Paths) -> Paths:
        """Return what holds after a gast.If at this point, given what holds after its branches."""
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
        """Return what holds after a loop at this point, given what holds at the end of a trip."""
        # What the next trip binds again, a function of this one may have taken.
        bound = {name: self.bound.get(name, node) for name in trip.bound}
        return Paths(bound, trip.captured, self.ended)
