"""What a way raises when a sample gives it nothing to compare."""

from __future__ import annotations


class Skipped(Exception):  # noqa: N818 - not an error
    """Nothing to compare; the message, for the report, says why."""
