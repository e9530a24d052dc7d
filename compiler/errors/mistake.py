"""One entry of the catalogue, and the base of the errors that carry one.

Not for: the entries (the other files of this folder).
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Mistake:
    """A mistake that an author can make.

    Attributes:
        code: what a message ends with, "C012"; it is never given to another mistake.
        title: the mistake, as a heading.
        cause: why it is one.
        fix: what to write instead.
        example: a body that makes it, of `def example(x, y, k)` whose x and y are tensors and k is
            an int attribute; or the text of a module, with its `@Composite`.
    """

    code: str
    title: str
    cause: str
    fix: str
    example: str

    def says(self, message: str) -> str:
        """Return a message about a case of it, with its code."""
        return f"{message} [{self.code}]"


class RefusedError(Exception):
    """An error without a place in the source; subclasses say which built-in one it is as well."""

    def __init__(self, mistake: Mistake, message: str) -> None:
        super().__init__(mistake.says(message))
        self.mistake = mistake
        self.message = message
