"""A loop that is being built.

Not for: which values it carries, how `break` leaves it (the frontend).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from composite.compiler.tfr import dialect
from composite.compiler.tfr.builder import Builder


class Loop:
    """Two blocks, `condition` and `body`, that `join` makes an scf.while.

    The carried values are their arguments, of the given types. Whether the types hold is known only
    when the body is complete, so the op is built outside of any block, and `join` inserts it. One
    that is never joined is destroyed when the module is complete, not before: other objects may
    refer to its values by their addresses, which must not be reused until then.
    """

    def __init__(self, builder: Builder, initial: Sequence[Any], types: Sequence[str]) -> None:
        self._builder = builder
        carried = [builder.cast(value, one) for value, one in zip(initial, types, strict=True)]
        results = [dialect.type_of(one) for one in types]
        self._op = builder.op("scf.while", carried, results, regions=2, attached=False)
        locations = [self._op.location] * len(results)
        self.condition, self.body = (
            region.blocks.append(*results, arg_locs=locations) for region in self._op.regions
        )
        builder.begin(self)

    def abandon(self) -> None:
        """Destroy it, because of an error or at the end."""
        self._op.erase()

    def decide(self, condition: Any) -> None:
        """End the block `condition` with a value: there is another trip if it is true."""
        with self._builder.into(self.condition):
            truth = self._builder.truth(condition)
            self._builder.op("scf.condition", [truth, *self.condition.arguments])

    def join(self, values: Sequence[Any], names: Sequence[str] = ()) -> list[Any]:
        """End the block `body` with the values of the next trip; returns the results of the loop.

        `names` are what the source calls the values, for messages.
        """
        with self._builder.into(self.body):
            self._builder.op("scf.yield", values)
        self._builder.name_results(self._op, names)
        self._builder.insert(self._op)
        self._builder.finish(self)
        return list(self._op.results)


def for_each(builder: Builder, items: Any, initial: Any, trip: Callable[[Any, Any], Any]) -> Any:
    """Build a loop over a list that carries one list; `trip` gives the next for item and list."""
    count = builder.length(items)
    loop = Loop(builder, [builder.constant(0), initial], ["attr", "sequence"])
    with builder.into(loop.condition):
        more = builder.compare("lt", loop.condition.arguments[0], count)
    loop.decide(more)
    index, carried = loop.body.arguments
    with builder.into(loop.body):
        item = builder.item(items, index, builder.element_type(items))
        made = builder.cast(trip(item, carried), "sequence")
        index = builder.binary("add", index, builder.constant(1))
    return loop.join([index, made])[1]
