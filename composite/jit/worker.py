"""The background threads that make kernels while expansions serve the calls.

The first starts with the first decorated op, unless COMPOSITE_JIT=0 or TVM is not installed, or
with a library whose kernels are to be checked; others start once there are requests for them. They
sleep in the runtime until a kernel is wanted, and end with the interpreter. The compilers are other
processes (`composite.compiler_process`). A thread does not survive a fork: a forked child has
threads of its own, which share the compilers and the cache.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import math
import os
import threading
import time
from collections.abc import Callable
from importlib import util

import tensorflow as tf

from composite.binding import native
from composite.binding.kernel_request import KernelRequest
from composite.binding.log import logger
from composite.binding.records import PROGRAM, NodeDef, record
from composite.compiler import account
from composite.compiler.tvm import NotCovered
from composite.compiler_process import client
from composite.compiler_process.client import UNMADE, CompilerPaused, Stopped
from composite.compiler_process.tasks import CompilerError
from composite.kernels import produce, refusals, toolchain, unchecked, verify
from composite.kernels.cache import Cache, open_default
from composite.kernels.claims import Claimed
from composite.kernels.expansions import Inexpandable
from composite.kernels.produce import Outcome
from composite.ops import call, function_op
from composite.ops.registry import OPS
from composite.progress import activity, making
from composite.progress.event import Listener

ENVIRONMENT = "COMPOSITE_JIT"
_WAKE_MS = 1000  # a stop is told to the runtime, which wakes the thread; this only bounds a miss
_AGAIN_MS = 50  # between looks at what another process makes
# Seconds between looks at what is left: a share of those that were waited, within bounds. Each look
# takes the GIL from the threads that make kernels.
_POLL_SHARE, _POLLS = 0.02, (0.005, 0.1)
# Kernels that are made, and those that wait to be measured.
_MOST_THREADS = 2 * client.PROCESSES


class Worker:
    """The threads and the cache they fill. Not for use from outside: see `start` and `wait`."""

    def __init__(self, *, is_without_threads: bool = False) -> None:
        """`is_without_threads`: TensorFlow's were lost in a fork, and there are no new ones."""
        self._is_without_threads = is_without_threads
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Tells the runtime that requests are served from now on, and begins."""
        native.call("composite_worker", record(running=True))
        self._add_thread()

    def _add_thread(self) -> None:
        """Has one more thread take requests, unless there are enough."""
        with self._lock:
            if self._stopping.is_set() or len(self._threads) == _MOST_THREADS:
                return
            thread = threading.Thread(target=self._run, name="composite-jit", daemon=True)
            self._threads.append(thread)
            thread.start()

    def is_alive(self) -> bool:
        """Whether requests are served."""
        return any(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        """Finishes the requests in hand, if any, and ends the threads."""
        self._stopping.set()
        native.call("composite_worker", record(running=False))
        with self._lock:
            threads = list(self._threads)
        # Leaving the interpreter while TensorFlow runs ops of a check would crash.
        for thread in threads:
            thread.join()

    def _run(self) -> None:
        kernels = functools.cache(open_default)
        elsewhere: list[NodeDef] = []  # requests that other processes serve
        try:
            self._get_ready(kernels())
            with call.eager_mode():
                while not self._stopping.is_set():
                    wake = _AGAIN_MS if elsewhere else _WAKE_MS
                    reply = native.call("composite_next_request", record(timeout_ms=wake))
                    if reply:
                        self._add_thread()  # for the next one
                        elsewhere.append(NodeDef.FromString(reply))
                    elsewhere = [one for one in elsewhere if not self._serve(one, kernels)]
        finally:  # without this, whoever waits for a kernel would wait for ever
            native.call("composite_worker", record(running=False))

    def _get_ready(self, kernels: Cache) -> None:
        """Has done, once, what the first request waits for otherwise."""
        if len(self._threads) > 1 or not enabled():
            return
        if kernels.is_empty and not self._is_without_threads:
            client.begin()  # nobody has made the kernel that the first call will want
        with contextlib.suppress(OSError):  # a source cannot be read: each request says so
            toolchain.toolchain()

    def _serve(self, message: NodeDef, kernels: Callable[[], Cache]) -> bool:
        """Whether a request was served; False where another process serves such a one."""
        function = message.attr[PROGRAM].s.decode()
        is_named = message.op != function_op.NAME
        name = message.op if is_named else function_op.in_short(function)
        with account.collected() as steps, making.kernel(name):
            try:
                outcome = _outcome(
                    message, kernels, self._stopping.is_set, must_be_known=self._is_without_threads
                )
            except Claimed:
                return False
        logger.info("%s: %s in %s", name, outcome.status, steps)
        answer = record(name=message.name, function=function, **outcome._asdict())
        making.count()  # before whoever waits sees that nothing is left
        try:
            native.call("composite_finish", answer)
        except tf.errors.NotFoundError as error:
            # Whoever asked has withdrawn it meanwhile: a stop, or an op's new definition.
            logger.debug("%s: the kernel came too late: %s", message.op, error)
        return True


def _outcome(
    message: NodeDef,
    kernels: Callable[[], Cache],
    stopping: Callable[[], bool],
    *,
    must_be_known: bool = False,
) -> Outcome:
    """What becomes of a request. Whatever goes wrong, the expansion serves its calls.

    Raises Claimed where another process with this cache serves such a request.
    """
    try:
        request = KernelRequest.parse(message)
        serve = unchecked.serve if request.unchecked else produce.produce
        return serve(request, kernels(), stopping, must_be_known=must_be_known)
    except Claimed:
        raise
    except Stopped:
        return Outcome("failed", "the process ends")
    except NotCovered as answer:
        level = logging.DEBUG if answer.sizes else logging.INFO  # asked again, with their values
        logger.log(level, "%s: no kernel: %s", message.op, answer)
        node = refusals.refused_node(request, answer)
        return Outcome("not_covered", str(answer), answer.sizes, node)
    except produce.Unknown as answer:
        return Outcome("failed", str(answer))
    except Inexpandable as error:  # the call itself says so, louder
        return Outcome("failed", str(error))
    except verify.Mismatch as error:
        logger.warning("%s: the kernel is not used: %s", message.op, error)
        return Outcome("failed", f"the kernel failed its check: {error}")
    except Exception as error:  # noqa: BLE001 - the thread serves every op of the process
        if stopping():  # whatever was taken down around us
            return Outcome("failed", "the process ends")
        told = _in_one_line(error)
        level = logging.INFO if isinstance(error, CompilerPaused) else logging.WARNING
        logger.log(level, "%s: no kernel, compiling failed: %s", _named(message.op), told)
        logger.debug("%s: where", message.op, exc_info=True)
        return Outcome("failed", f"compiling failed: {told}")


def _named(op: str) -> str:
    """The op, and where its author wrote it; a function without a name has no such place."""
    known = OPS.current(op)
    return f"{op} ({known.place})" if known is not None and known.place else op


def _in_one_line(error: Exception) -> str:
    """What was raised: its kind unless it is ours, and its message."""
    if isinstance(error, CompilerError):
        logger.debug("the compiler's lines: %s", error.trace)
    text = str(error) if isinstance(error, UNMADE) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


class _Process:
    """What this process has of a worker."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.worker: Worker | None = None
        self.is_without_threads = False


_process = _Process()


def enabled() -> bool:
    """Whether this process may compile: COMPOSITE_JIT is not 0, and TVM is installed."""
    return _may_start() and _is_installed()


@functools.cache
def _is_installed() -> bool:
    """Whether there is a TVM; asked for once, since it looks through the folders of packages."""
    return util.find_spec("tvm") is not None


def _may_start() -> bool:
    return os.environ.get(ENVIRONMENT, "1") != "0"


@functools.cache
def announce_compiler() -> None:
    """Tells the runtime what the kernel compiler takes, so that it knows what may get a kernel."""
    if enabled():
        from composite.compiler.tvm import table
        from composite.compiler.tvm.ir.dtypes import DTYPES

        dtypes = [tf.as_dtype(name) for name in DTYPES]
        native.call("composite_set_kernel_ops", record(ops=sorted(table.NAMES), dtypes=dtypes))


def start() -> None:
    """Starts the worker; nothing when it runs already or this process does not compile."""
    announce_compiler()
    if enabled():
        _start()
    if os.environ.get("COMPOSITE_REGIONS") == "1":
        _announce_refusals()


def start_for_checks() -> None:
    """Starts the worker for kernels that a library brings unchecked; TVM need not be installed.

    Nothing with COMPOSITE_JIT=0, or when the worker runs already.
    """
    if _may_start():
        _start()


def _start() -> None:
    with _process.lock:
        if _process.worker is None:
            _process.worker = Worker(is_without_threads=_process.is_without_threads)
            _process.worker.start()


def start_for_regions() -> None:
    """Starts the worker, and has regions leave out what was refused in any process."""
    start()
    _announce_refusals()


def _announce_refusals() -> None:
    if running():
        refusals.announce()


def running() -> bool:
    """Whether this process has a worker."""
    return _process.worker is not None and _process.worker.is_alive()


def wait(timeout: float | None = None, *, progress: Listener | None = None) -> bool:
    """Waits until no kernel is being compiled or waiting to be compiled.

    Returns True then, and False if `timeout` seconds pass first. Returns at once in a process that
    compiles nothing. `progress` is called with ProgressEvents; without it, standard error shows
    which kernel is being made and how many are left, if it is a terminal.
    """
    begin = time.monotonic()
    end = math.inf if timeout is None else begin + timeout
    with activity.told("kernels", progress) as told:
        watch = making.Watch()
        while running() and (pending := _pending()):
            now = time.monotonic()
            if now >= end:
                return False
            watch.report(told, pending)
            least, most = _POLLS
            time.sleep(min(max(_POLL_SHARE * (now - begin), least), most, end - now))
        watch.report(told, 0)
    return True


def _pending() -> int:
    return int(NodeDef.FromString(native.call("composite_pending")).attr["pending"].i)


def stop() -> None:
    """Ends the worker, after the request in hand; nothing when there is none."""
    with _process.lock:
        worker, _process.worker = _process.worker, None
    if worker is not None:
        worker.stop()


def _start_in_child() -> None:
    _process.lock = threading.Lock()  # the parent's may have been held
    _process.is_without_threads |= call.tensorflow_has_started()
    if _process.worker is not None:
        _process.worker = None
        native.call("composite_worker", record(running=False))
        _start()


atexit.register(stop)
os.register_at_fork(after_in_child=_start_in_child)
