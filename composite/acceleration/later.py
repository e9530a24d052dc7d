"""A function that is being accelerated by a thread, and switches over by itself.

The thread ends with the process: what leaves the interpreter while TensorFlow runs would crash. So
it is interrupted at exit, and waited for as long as the op that it is at takes, but not for ever.
"""

from __future__ import annotations

import atexit
import ctypes
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from composite.acceleration.comparing import Accelerated
from composite.acceleration.report import AccelerationReport
from composite.binding import settings
from composite.binding.log import logger
from composite.ops import call as calls

_PATIENCE = 5.0  # seconds at exit
_AGAIN = 1.0  # seconds between two interruptions


class Accelerating:
    """A function that is being accelerated; calling it calls the original until that is done.

    From then on it calls what `composite.accelerate` found to be faster, which may be the original.
    Made by `composite.accelerate(..., wait=False)`. Thread-safe.
    """

    def __init__(
        self, original: Callable[..., Any], name: str, make: Callable[[], Accelerated]
    ) -> None:
        self._call = original
        self._name = name
        self._made: Accelerated | None = None
        self._error: BaseException | None = None
        options = settings.of_thread()

        def run() -> None:
            with calls.eager_mode(), settings.options(**options):
                self._run(make)

        self._thread = threading.Thread(target=run, name="composite-accelerate", daemon=True)
        _running.add(self._thread)
        self._thread.start()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the original returns for these arguments, from whichever is called now."""
        return self._call(*args, **kwargs)

    @property
    def is_ready(self) -> bool:
        """Whether calls run what was found to be the fastest."""
        return self._made is not None

    @property
    def error(self) -> BaseException | None:
        """Why the original is called for ever: what was raised meanwhile, if anything."""
        if self._error is None and self._made is None and not self._thread.is_alive():
            self._error = RuntimeError(
                f"{self._name} was being accelerated when this process was forked or began to end: "
                "the original is called"
            )
        return self._error

    @property
    def report(self) -> AccelerationReport | None:
        """What was found, compared and measured; None until it is ready.

        Raises what was raised meanwhile.
        """
        if (error := self.error) is not None:
            raise error
        return None if self._made is None else self._made.report

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is ready. False if `timeout` seconds pass first.

        Raises what was raised meanwhile.
        """
        self._thread.join(timeout)
        return self.report is not None

    def _run(self, make: Callable[[], Accelerated]) -> None:
        try:
            made = make()
        except BaseException as error:  # noqa: BLE001 - told by `report`, and logged
            if _leaving.is_set():
                return
            self._error = error
            told = " ".join(f"{type(error).__name__}: {error}".split())
            logger.warning("%s is not accelerated: %s", self._name, told)
            logger.debug("%s: where", self._name, exc_info=True)
            return
        self._made = self._call = made
        logger.info("%s: %s", self._name, made.report.verdict)


_leaving = threading.Event()
_running: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


def _stop() -> None:
    """Ends the threads, each at its next line of Python."""
    _leaving.set()
    end = time.monotonic() + _PATIENCE
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    while (alive := [one for one in _running if one.is_alive()]) and time.monotonic() < end:
        for thread in alive:
            raise_in(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
            thread.join(_AGAIN)


atexit.register(_stop)
