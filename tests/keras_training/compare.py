"""Trainings without regions and with them, held against each other.

A training gives arrays. What another rounding may move is measured: the same training is run once
more from inputs and weights that are a few ulp away, and that difference is allowed for. A bias in
front of a batch norm has a gradient of 0 but for rounding, of which Adam makes a whole step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import composite

_RTOL = 2e-4  # of the largest |y| of an array
_NOISE = 20.0  # times what a few ulp of the inputs move
_WAIT = 600.0  # seconds that the kernels of one training may take

Arrays = Mapping[str, Any]
Run = Callable[[float], Arrays]  # given how far away its inputs and weights are to be


@dataclasses.dataclass
class Counts:
    """What many trainings gave."""

    trainings: int = 0
    regions: int = 0
    kernels: int = 0
    launches: int = 0
    failed: list[str] = dataclasses.field(default_factory=list)

    def check(self, name: str, make: Callable[[], Run], *, with_kernels: bool) -> None:
        """Trains without regions, with them, and with kernels; prints and counts what differs.

        `make` gives a training that begins anew at each call.
        """
        self.trainings += 1
        before = composite.stats()
        try:
            self._check(name, make, with_kernels)
        except Exception as error:  # noqa: BLE001 - told below, whatever it is
            self._fail(name, f"{type(error).__name__}: {str(error)[:2000]}")
        counted = composite.stats() - before
        self.regions += counted["regions"]
        self.kernels += counted["answered"]
        self.launches += counted["kernel_launches"]
        if counted["invalid_graphs"]:
            self._fail(name, f"{counted['invalid_graphs']} graphs would not be valid")
        if not counted["regions"]:
            print(f"{name}: no regions", flush=True)

    def _check(self, name: str, make: Callable[[], Run], with_kernels: bool) -> None:
        with composite.options(regions=False):
            train = make()
            wanted, moved = train(0.0), train(1e-6)
        with composite.options(regions=True):
            train = make()
            self._compare(name, "before kernels", train(0.0), wanted, moved)
            for _ in range(2 if with_kernels else 0):
                if not composite.wait(timeout=_WAIT):
                    self._fail(name, f"kernels took more than {_WAIT:g} s")
                self._compare(name, "after kernels", train(0.0), wanted, moved)

    def _compare(self, name: str, way: str, found: Arrays, wanted: Arrays, moved: Arrays) -> None:
        for what in wanted:
            y, z, near = (np.asarray(of[what], np.float64) for of in (found, wanted, moved))
            scale = np.max(np.abs(z), initial=1e-3, where=np.isfinite(z))
            noise = np.max(np.abs(near - z), initial=0.0, where=np.isfinite(near - z))
            if np.allclose(y, z, rtol=0.0, atol=_RTOL * scale + _NOISE * noise, equal_nan=True):
                continue
            off = np.max(np.abs(y - z), initial=0.0)
            self._fail(
                name, f"{way}: {what} is {off:.3g} away, |y| up to {scale:.3g}, noise {noise:.3g}"
            )
            return

    def _fail(self, name: str, why: str) -> None:
        print(f"{name}: {why}", flush=True)
        if name not in self.failed:
            self.failed.append(name)
