"""`composite.options`: the worker that regions need is there."""

from __future__ import annotations

import composite
from composite.jit import worker


def test_regions_have_a_compiler() -> None:
    was_running = worker.running()
    worker.stop()
    with composite.options(regions=False):
        assert not worker.running()
    with composite.options(regions=True):
        assert worker.running() == worker.enabled()
    if not was_running:
        worker.stop()
