"""The one error of this package that is an answer, not a failure.

Not for bugs of the compiler itself: those stay whatever Python or TVM raises.
"""

from __future__ import annotations

from collections.abc import Sequence


class NotCovered(Exception):  # noqa: N818 - an answer ("no kernel"), and the name that callers type
    """No kernel can be made for this function and shape class; the expansion serves it.

    The message is one sentence that names the op, dtype or fact, because ``explain`` prints it.
    Before it is where the author wrote that, "ops.py:12:5: ", if one node is the reason.

    Attributes:
        reason: The sentence alone.
        place: Where the author wrote that, or "".
        sizes: Inputs of the function, scalars, whose values would have to be known as sizes are:
            for another shape class there may be a kernel, see :func:`.read.reader.read_function`.
        node: The node of the function that has no lowering, or "" if it is not one node's.
    """

    def __init__(
        self, message: str, place: str = "", sizes: Sequence[int] = (), node: str = ""
    ) -> None:
        """Take the sentence, and the place, the inputs and the node if they are known."""
        super().__init__(f"{place}: {message}" if place else message)
        self.reason = message
        self.place = place
        self.sizes = tuple(sizes)
        self.node = node

    def at(self, place: str, node: str) -> NotCovered:
        """Return the answer for this node, with this place ("": unknown) unless it has one."""
        place = self.place or place
        return NotCovered(self.reason, place, self.sizes, node)
