"""The tests of stacks have them formed: a process that cannot compile has none."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def _regions_are_formed(lowers_nothing: None) -> None: ...
