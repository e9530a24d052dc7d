"""The one error of this package that is an answer, not a failure.

Not for bugs of the compiler itself: those stay whatever Python or TVM raises.
"""


class NotCovered(Exception):  # noqa: N818 - an answer ("no kernel"), and the name that callers type
    """No kernel can be made for this function and shape class; the expansion serves it.

    The message is one sentence that names the op, dtype or fact, because ``explain`` prints it.
    """
