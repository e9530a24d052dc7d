"""The one error of this package that is an answer, not a failure.

Not for bugs of the compiler itself: those stay whatever Python or TVM raises.
"""

from __future__ import annotations


class NotCovered(Exception):  # noqa: N818 - an answer ("no kernel"), and the name that callers type
    """No kernel can be made for this function and shape class; the expansion serves it.

    The message is one sentence that names the op, dtype or fact, because ``explain`` prints it.
    Before it is where the author wrote that, "ops.py:12:5: ", if one node is the reason.

    Attributes:
        reason: The sentence alone.
        place: Where the author wrote that, or "".
    """

    def __init__(self, message: str, place: str = "") -> None:
        """Take the sentence, and the place if it is known."""
        super().__init__(f"{place}: {message}" if place else message)
        self.reason = message
        self.place = place

    def at(self, place: str) -> NotCovered:
        """Return the answer with this place ("": unknown), unless it has one."""
        return self if self.place else NotCovered(str(self), place)
