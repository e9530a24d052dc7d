"""The logger of the package. COMPOSITE_LOG=debug|info|warning|error prints it to standard error.

One line for each compile, cache entry and verdict at info, one for whatever was not as it should be
at warning. Without the variable, Python's logging configuration decides.
"""

from __future__ import annotations

import logging
import os
import sys

ENVIRONMENT = "COMPOSITE_LOG"
LEVELS = ("debug", "info", "warning", "error")

logger = logging.getLogger("composite")


class _ToStandardError(logging.Handler):
    """Prints to what standard error is at that time, which shows a progress bar for a while."""

    def emit(self, record: logging.LogRecord) -> None:
        """Prints a line."""
        try:
            if (stream := sys.stderr) is not None:
                stream.write(self.format(record) + "\n")
                stream.flush()
        except Exception:  # noqa: BLE001 - as the handlers of `logging` have it
            self.handleError(record)


def configure() -> None:
    """Reads COMPOSITE_LOG. ValueError when it names no level. Called once, at the first import."""
    level = os.environ.get(ENVIRONMENT, "").lower()
    if not level:
        return
    if level not in LEVELS:
        raise ValueError(f"{ENVIRONMENT}={level!r} in the environment is not one of {LEVELS}")
    handler = _ToStandardError()
    handler.setFormatter(logging.Formatter("composite %(levelname)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False


configure()
