"""Random expressions of every kind."""

from __future__ import annotations

from tests.fuzz.known import Known
from tests.fuzz.tensors import Tensors


class Expressions(Tensors, Known):
    """Makes expressions, as text, from what a scope has."""
