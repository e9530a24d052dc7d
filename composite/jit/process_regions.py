"""COMPOSITE_REGIONS=1: regions, and their kernels, in a process that may declare no op.

The runtime forms regions, and the worker makes their kernels. Both are started once TensorFlow is
imported; a process that does not import it starts neither.
"""

from __future__ import annotations

import os

from composite.binding import arrival, environment, tensorflow_version

_NO = ("", "0")


def arrange() -> None:
    """Has TensorFlow's functions get regions from now on, if COMPOSITE_REGIONS=1."""
    if os.environ.get(environment.REGIONS, "") not in _NO:
        arrival.once_imported("tensorflow", _start)


def _start() -> None:
    """Loads the runtime and starts the worker. Never raises: the caller is importing a package."""
    from composite.binding.log import logger

    try:
        environment.check()
        tensorflow_version.check()
        from composite.jit import worker

        worker.start_for_regions()
    except (ImportError, ValueError) as error:
        logger.error("%s has no effect: %s", environment.REGIONS, error)
        return
    if not worker.enabled():
        why = "this process compiles no kernels (COMPOSITE_JIT=0, or TVM is not installed)"
        logger.warning("%s has no effect: %s", environment.REGIONS, why)
