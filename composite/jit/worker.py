"""The background threads that make kernels while expansions serve the calls.

The first thread starts with the first decorated op, unless COMPOSITE_JIT=0 or TVM is not installed,
or when a library is loaded whose kernels have to be checked. More threads start when there are
requests for them. They sleep in the runtime until a kernel is requested, and end with the
interpreter. The compilers are processes of their own (`composite.compiler_process`). Threads do not
survive a fork: a forked child starts its own, which share the compilers and the cache.
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
from composite.kernels import produce, refusals, remeasuring, toolchain, unchecked, verify
from composite.kernels.cache import Cache, open_default
from composite.kernels.claims import Claimed
from composite.kernels.expansions import Inexpandable
from composite.kernels.produce import Outcome
from composite.ops import call, function_op
from composite.ops.registry import OPS
from composite.progress import activity, making
from composite.progress.event import Listener

ENVIRONMENT = "COMPOSITE_JIT"
_WAKE_MS = 1000  # the runtime wakes the threads on a stop; this limits the delay if it does not
_AGAIN_MS = 50  # between checks whether another process has made the kernel
# Seconds between checks whether requests are left: a share of the time waited so far, within
# limits. Each check takes the GIL from the threads that make kernels.
_POLL_SHARE, _POLLS = 0.02, (0.005, 0.1)
# Kernels being made, and kernels waiting to be measured.
_MOST_THREADS = 2 * client.PROCESSES


class Worker:
    """The threads and the cache they fill. Not for use from outside: see `start` and `wait`."""

    def __init__(self, *, is_without_threads: bool = False) -> None:
        """`is_without_threads`: TensorFlow lost its threads in a fork and cannot start new ones."""
        self._is_without_threads = is_without_threads
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Starts serving requests, and tells the runtime so."""
        native.call("composite_worker", record(running=True))
        self._add_thread()

    def _add_thread(self) -> None:
        """Starts another thread, unless there are enough."""
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
        """Ends the threads when they have finished their current requests."""
        self._stopping.set()
        native.call("composite_worker", record(running=False))
        with self._lock:
            threads = list(self._threads)
        # If the interpreter exited while a check runs TensorFlow's ops, the process would crash.
        for thread in threads:
            thread.join()

    def _run(self) -> None:
        kernels = functools.cache(open_default)
        elsewhere: list[NodeDef] = []  # requests that other processes are serving
        try:
            self._get_ready(kernels())
            with call.eager_mode():
                while not self._stopping.is_set():
                    wake = _AGAIN_MS if elsewhere else _WAKE_MS
                    reply = native.call("composite_next_request", record(timeout_ms=wake))
                    if reply:
                        self._add_thread()  # for the next one
                        elsewhere.append(NodeDef.FromString(reply))
                    elif not self._is_without_threads:
                        remeasuring.run_due(self._stopping.is_set)
                    elsewhere = [one for one in elsewhere if not self._serve(one, kernels)]
        finally:  # otherwise threads that wait for a kernel would wait forever
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
        """Serves a request. Returns False if another process is serving an equal one."""
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
        making.count()  # before waiting threads see that no request is left
        try:
            native.call("composite_finish", answer)
        except tf.errors.NotFoundError as error:
            # The request was withdrawn meanwhile, by a stop or a new definition of the op.
            logger.debug("%s: the kernel came too late: %s", message.op, error)
        return True


def _outcome(
    message: NodeDef,
    kernels: Callable[[], Cache],
    stopping: Callable[[], bool],
    *,
    must_be_known: bool = False,
) -> Outcome:
    """The outcome of a request. If anything fails, the expansion serves its calls.

    Raises Claimed if another process with the same cache is serving an equal request.
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
        level = logging.DEBUG if answer.sizes else logging.INFO  # requested again with values
        logger.log(level, "%s: no kernel: %s", message.op, answer)
        node = refusals.refused_node(request, answer)
        return Outcome("not_covered", str(answer), answer.sizes, node)
    except produce.Unknown as answer:
        return Outcome("failed", str(answer))
    except Inexpandable as error:  # the call itself raises the error
        return Outcome("failed", str(error))
    except verify.Mismatch as error:
        logger.warning("%s: the kernel is not used: %s", message.op, error)
        return Outcome("failed", f"the kernel failed its check: {error}")
    except Exception as error:  # noqa: BLE001 - the thread serves every op of the process
        if stopping():  # the interpreter is shutting down
            return Outcome("failed", "the process ends")
        told = _in_one_line(error)
        level = logging.INFO if isinstance(error, CompilerPaused) else logging.WARNING
        logger.log(level, "%s: no kernel, compiling failed: %s", _named(message.op), told)
        logger.debug("%s: where", message.op, exc_info=True)
        return Outcome("failed", f"compiling failed: {told}")


def _named(op: str) -> str:
    """The op and its place in the author's source; a function without a name has none."""
    known = OPS.current(op)
    return f"{op} ({known.place})" if known is not None and known.place else op


def _in_one_line(error: Exception) -> str:
    """An error in one line: its type, unless it is one of ours, and its message."""
    if isinstance(error, CompilerError):
        logger.debug("the compiler's lines: %s", error.trace)
    text = str(error) if isinstance(error, UNMADE) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


class _Process:
    """The worker of this process."""

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
    """Whether TVM is installed. Cached, since finding out searches the folders of packages."""
    return util.find_spec("tvm") is not None


def _may_start() -> bool:
    return os.environ.get(ENVIRONMENT, "1") != "0"


@functools.cache
def announce_compiler() -> None:
    """Tells the runtime which ops the kernel compiler covers."""
    if enabled():
        from composite.compiler.tvm import table
        from composite.compiler.tvm.ir.dtypes import DTYPES

        dtypes = [tf.as_dtype(name) for name in DTYPES]
        native.call("composite_set_kernel_ops", record(ops=sorted(table.NAMES), dtypes=dtypes))


def start() -> None:
    """Starts the worker, unless it is running or this process does not compile."""
    announce_compiler()
    if enabled():
        _start()
    if os.environ.get("COMPOSITE_REGIONS") == "1":
        _announce_refusals()


def start_for_checks() -> None:
    """Starts the worker to check the unchecked kernels of a library, which does not need TVM.

    Does nothing if COMPOSITE_JIT=0 or the worker is running.
    """
    if _may_start():
        _start()


def _start() -> None:
    with _process.lock:
        if _process.worker is None:
            _process.worker = Worker(is_without_threads=_process.is_without_threads)
            _process.worker.start()


def start_for_regions() -> None:
    """Starts the worker, and keeps nodes out of regions that the compiler has refused before.

    What XLA compiles has regions from then on, too.
    """
    from composite.jit import xla_functions

    start()
    _announce_refusals()
    xla_functions.arrange()


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
    """Stops the worker after its current requests. Does nothing if there is no worker."""
    with _process.lock:
        worker, _process.worker = _process.worker, None
    if worker is not None:
        worker.stop()


def _start_in_child() -> None:
    _process.lock = threading.Lock()  # the parent may have held the lock when it forked
    _process.is_without_threads |= call.tensorflow_has_started()
    if _process.worker is not None:
        _process.worker = None
        native.call("composite_worker", record(running=False))
        _start()


atexit.register(stop)
os.register_at_fork(after_in_child=_start_in_child)
