"""What XLA's code is made of and calls."""

from __future__ import annotations

from typing import Any

import composite


class Counted:
    """What composite.stats() counted in a block."""

    def __enter__(self) -> Counted:
        self._before = composite.stats()
        return self

    def __exit__(self, *_: Any) -> None:
        found = composite.stats() - self._before
        self.regions, self.nodes = found["regions"], found["xla_nodes"]
        self.kernels, self.launches = found["xla_kernel_nodes"], found["xla_kernel_launches"]
