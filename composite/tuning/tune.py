"""`composite.tune`: a call, a budget, and a database that knows a better kernel afterwards."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from composite.aot.replacing import naming
from composite.aot.stated_calls import described
from composite.binding import native
from composite.binding.kernel_request import KernelRequest
from composite.binding.records import NodeDef, python_values
from composite.compiler import tvm as backend
from composite.jit import worker
from composite.kernels import cache, chosen, produce
from composite.kernels.claims import Claimed
from composite.kernels.expansions import Inexpandable
from composite.kernels.tuned import Database, Record, Winner
from composite.ops.op import CompositeOp
from composite.progress import activity
from composite.progress.event import Listener
from composite.tuning import calls
from composite.tuning.local import Local
from composite.tuning.session import Budget, Measurer, Row, Session
from composite.tuning.space import Built, Rejected, Space

_SAVED = 5.0  # seconds between two times that the database is written
_AGAIN = 0.05  # seconds between looks at what another process makes


@dataclass(frozen=True)
class Tuned:
    """What a tuning found.

    Attributes:
        op_name: the op.
        call: shapes and attributes that the kernel is for.
        choices: the choices that differ from the default's; empty if the default is fastest.
        us: microseconds of the winning kernel.
        default_us: microseconds of the default kernel, measured beside it.
        trials: every candidate, in the order in which they were tried.
        measured: how many of them were measured now; the others were in the database.
        seconds: how long the tuning took.
        database: the file with the result.
    """

    op_name: str
    call: str
    choices: dict[str, int | str]
    us: float
    default_us: float
    trials: tuple[Row, ...]
    measured: int
    seconds: float
    database: Path

    @property
    def ratio(self) -> float:
        """Of the default's time that the kernel takes; 1.0 where that one stays."""
        return self.us / self.default_us

    def __str__(self) -> str:
        made = ", ".join(f"{n.partition('.')[2]}={v}" for n, v in self.choices.items())
        found = f"{made}: {self.us:.1f} us" if self.choices else f"the default: {self.us:.1f} us"
        return (
            f"{self.op_name}({self.call}) -> {found}, {self.ratio:.2f} of the default's "
            f"{self.default_us:.1f} us, after {len(self.trials)} trials"
        )


def tune(  # noqa: PLR0913 - the budget, and where things are
    op: CompositeOp,
    *args: Any,
    trials: int = 64,
    seconds: float | None = None,
    database: str | os.PathLike[str] | None = None,
    tracker: str | None = None,
    key: str = "",
    progress: Listener | None = None,
    **attrs: Any,
) -> Tuned:
    """Searches for the fastest choices of a kernel's schedule, by measuring.

    Args:
        op: a composite op.
        *args: inputs, as in a call. In place of a tensor, a tf.TensorSpec or a pair (dtype, dims)
            as in `CompositeOp.add_signature`: a dim that is None or a name varies, and the kernel
            for all its sizes is tuned. A tf.Variable, or (dtype, dims, "constant"), is an input
            that never changes.
        trials: how many candidates to try, including those that are in the database.
        seconds: the time limit, including compiling and checking. The default kernel is compiled
            in any case; a trial that may exceed the limit is not started.
        database: the file to write to. By default the file of COMPOSITE_TUNED, or else a file in
            the folder of the kernel cache, which every process of this user reads.
        tracker: "host:port" of a TVM RPC tracker, whose servers measure instead of this machine.
        key: the key of these servers.
        progress: is called with ProgressEvents, a part for each trial, named by the best result so
            far. Without it, standard error shows them if it is a terminal.
        **attrs: attributes and further inputs, by name.

    Returns:
        A Tuned with the choices, the times, and all trials.

    Raises:
        TypeError, ValueError: if the call is invalid, or no kernel covers it.
        OSError: if the database cannot be written, or no server answers.

    Every candidate is compared with the expansion, like every kernel before its first use. The
    default stays unless a candidate is faster in a second, longer comparison, at every size that is
    measured. From now on this process uses the result, and so do processes that compile the kernel
    later.
    """
    start = time.monotonic()
    _require_tunable(op, trials, seconds)
    file = _file(database)
    known = Database.read(file) if file.exists() else Database()
    with activity.told(f"tune {op.__name__}", progress), _folder() as folder:
        worker.wait()  # what compiles beside it would be measured as well
        space = _space(op, args, attrs, folder)
        name = space.identity.tuning_key(space.target.key)
        record = known.records.setdefault(
            name, Record(op.op_name, described(space.request), space.target.key)
        )
        measurer = _measurer(space, tracker, key)
        session = _session(op, space, record, measurer, Budget(trials, seconds, start))
        winner = _search(session, record, _saver(file, Database({name: record})))
        choices = record.trials[winner.code].choices if winner.code in record.trials else {}
        if choices and tracker is None:
            _install(space.request)
    return Tuned(
        op.op_name,
        record.call,
        session.changed(choices),
        winner.measured.us,
        winner.measured.default_us,
        tuple(session.rows),
        session.measured,
        time.monotonic() - start,
        file,
    )


def _require_tunable(op: Any, trials: int, seconds: float | None) -> None:
    """TypeError for what is no composite op, ValueError without a budget."""
    if not isinstance(op, CompositeOp):
        raise TypeError(f"composite.tune takes a composite op, not {op!r}")
    if trials < 1 or (seconds is not None and seconds <= 0):
        raise ValueError(f"composite.tune: no budget: trials={trials}, seconds={seconds}")


def _session(
    op: CompositeOp,
    space: Space,
    record: Record,
    measurer: Callable[[Built], Measurer],
    budget: Budget,
) -> Session:
    """A session that has compiled the default kernel. ValueError where that is rejected."""
    try:
        return Session(space, record, measurer, budget)
    except Rejected as error:
        raise ValueError(f"no kernel for {op.__name__}({record.call}): {error}") from error


@contextmanager
def _folder() -> Iterator[Path]:
    """For the libraries of the trials."""
    with tempfile.TemporaryDirectory(prefix="composite-") as folder, naming(folder):
        yield Path(folder)


def _search(session: Session, record: Record, save: Callable[[float], None]) -> Winner:
    """The winner, which the record then has; the file has what was found, however it ends."""
    try:
        winner = session.run(lambda: save(_SAVED))
        record.winners[session.machine] = winner
    finally:
        save(0.0)
    return winner


def _file(database: str | os.PathLike[str] | None) -> Path:
    if database is not None:
        return Path(database).absolute()
    named = os.environ.get(chosen.ENVIRONMENT)
    if named:
        return Path(named).absolute()
    cache.open_default()  # makes the folder, with the rights that it must have
    return chosen.default_file()


def _space(op: CompositeOp, args: tuple[Any, ...], attrs: dict[str, Any], folder: Path) -> Space:
    """The kernels of a call. ValueError where there is none."""
    reason = ""
    for request in calls.requests(op, args, attrs):
        try:
            return Space(_avoiding_others(request), backend.Target.host(), folder)
        except (backend.NotCovered, Inexpandable) as error:
            reason = str(error)  # of what packs constants, or of the rest
    raise ValueError(f"no kernel for {op.__name__}({described(request)}): {reason}")


def _avoiding_others(request: KernelRequest) -> KernelRequest:
    """With sizes for dims that vary for which the process has no kernel of their own.

    A node would run that one, whatever is to be measured.
    """
    for _ in range(8):
        if not request.hint:
            break
        asked = calls.sized(request).to_node_def()
        reply = python_values(NodeDef.FromString(native.call("composite_explain", asked)))
        if not reply.get("kernel"):
            break
        request = calls.with_larger_hint(request)
    return request


def _measurer(space: Space, tracker: str | None, key: str) -> Callable[[Built], Measurer]:
    if tracker is None:
        return lambda default: Local(space.request, default)
    from composite.tuning.remote import Remote

    return lambda default: Remote(space.request, default, tracker, key)


def _saver(file: Path, database: Database) -> Callable[[float], None]:
    last = time.monotonic()

    def save(at_least: float) -> None:
        nonlocal last
        if time.monotonic() - last >= at_least:
            database.add_to(file)
            last = time.monotonic()

    return save


def _install(request: KernelRequest) -> None:
    """Gives this process the kernel, if it compiles any."""
    if not worker.enabled():
        return
    while True:
        try:
            produce.produce(request, cache.open_default(), lambda: False)
        except Claimed:
            time.sleep(_AGAIN)
        else:
            return
