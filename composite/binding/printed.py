"""Reports that print themselves: to a console, as text, and as a page."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


class Printed:
    """What prints itself to a console, as text and as a page."""

    def print_to(self, console: Console) -> None:
        """Prints it."""
        raise NotImplementedError

    def __str__(self) -> str:
        from rich.console import Console

        text = io.StringIO()
        self.print_to(Console(file=text, width=100))
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())

    def to_html(self) -> str:
        """The report as an HTML page."""
        from rich.console import Console

        console = Console(file=io.StringIO(), width=100, record=True)
        self.print_to(console)
        return console.export_html()
