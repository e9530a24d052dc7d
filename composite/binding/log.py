"""The logger of the package. COMPOSITE_LOG=debug|info|warning|error prints it to standard error.

One line for each compile, cache entry and verdict at info, one for whatever was not as it should be
at warning. Without the variable, Python's logging configuration decides.
"""

from __future__ import annotations

import logging
import os

ENVIRONMENT = "COMPOSITE_LOG"
LEVELS = ("debug", "info", "warning", "error")

logger = logging.getLogger("composite")


def configure() -> None:
    """Reads COMPOSITE_LOG. ValueError when it names no level. Called once, at the first import."""
    level = os.environ.get(ENVIRONMENT, "").lower()
    if not level:
        return
    if level not in LEVELS:
        raise ValueError(f"{ENVIRONMENT}={level!r} in the environment is not one of {LEVELS}")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("composite %(levelname)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    logger.propagate = False


configure()
