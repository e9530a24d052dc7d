"""COMPOSITE_REGIONS=1: regions, and their kernels, in a process that may declare no op.

The runtime forms regions, and the worker makes their kernels. Both come with TensorFlow: a process
that does not import it is to start neither.
"""

from __future__ import annotations

import os

from composite.binding import arrival, environment, tensorflow_version

_NO = ("", "0")


def arrange() -> None:
    """Has functions that TensorFlow prepares from now on get regions, if the process says so."""
    if os.environ.get(environment.REGIONS, "") not in _NO:
        arrival.once_imported("tensorflow", _start)


def _start() -> None:
    """Loads the runtime and starts the worker. Whoever imports a package is not to fail here."""
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
