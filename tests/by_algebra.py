"""What a sweep tells of kernels that were compared by algebra."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from composite.kernels import algebra, produce, verify


@contextmanager
def told() -> Iterator[collections.Counter[str]]:
    """Counts what is said of kernels; prints those that differ, and in the end the counts."""
    counts: collections.Counter[str] = collections.Counter()
    own = produce.by_algebra

    def by_algebra(kernel: Any, samples: Any) -> str:
        try:
            said = own(kernel, samples)
        except verify.Mismatch as error:
            counts["differs"] += 1
            print(f"{kernel.name}, {kernel.strategy}: {error}", flush=True)
            raise
        counts[said] += 1
        return said

    with mock.patch.object(produce, "by_algebra", by_algebra):
        yield counts
    if algebra.is_wanted():
        for said, count in counts.most_common():
            print(f"  {count}: {said}")
