"""All sides at one work, in turns: each in a process of its own, one process at a time.

As `timing.interleave` does within a process: a slow spell of the machine hits all sides, and ratios
are taken within a round.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from benchmarks.sides.process import Lost, Process, Refused
from benchmarks.timing import Timings, rounds
from benchmarks.works.layers import Shape
from benchmarks.works.model_work import ModelWork
from benchmarks.works.work import Work

AnyWork = TypeVar("AnyWork", Work, ModelWork)

OURS, KERNEL = "ours", "bare kernel"

_ROOT = Path(__file__).resolve().parent.parent.parent
PEERS_PYTHON = _ROOT / ".venv-peers" / "bin" / "python"
_LAYERS = 3  # a stack that goes there and back is two to the policy, which has room for six


@dataclass(frozen=True)
class Member:
    """Who takes part: the module of the side, and the interpreter that has its packages.

    `single`: it runs single layers, not stacks.
    """

    module: str
    python: Path = Path(sys.executable)
    single: bool = False


MEMBERS = (
    Member("ours"),
    Member("bare_kernel", single=True),
    Member("tensor_flow"),
    Member("onnx_runtime", PEERS_PYTHON),
    Member("open_vino", PEERS_PYTHON),
    Member("torch_cpu", PEERS_PYTHON),
)

MODEL_MEMBERS = (
    Member("model_keras"),  # first: it writes what the others read
    Member("model_onnx_runtime", PEERS_PYTHON),
    Member("model_open_vino", PEERS_PYTHON),
)


@dataclass(frozen=True)
class Comparison(Generic[AnyWork]):
    """What came of one work.

    Attributes:
        work: what was run.
        timings: seconds of a node, or of a call of a model, by column and round.
        columns: for each column its setting, a note, and how far its result is off.
        refused: why a side has no column here, by module.
    """

    work: AnyWork
    timings: Timings
    columns: dict[str, dict[str, Any]]
    refused: dict[str, str]


class Team:
    """The processes of all members; a context that ends them."""

    def __init__(self, members: tuple[Member, ...] = MEMBERS, *, patience: float = 300) -> None:
        """`patience`: after so many seconds without an answer a member is given up."""
        self._members = {member.module: member for member in members}
        self._patience = patience
        self._processes: dict[str, Process] = {}
        # A cache of this run alone: verdicts that another run measured are not its figures.
        self._cache = tempfile.TemporaryDirectory(prefix="composite-bench-")
        self.versions: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        """Why a member takes no part, by module."""
        self._seen: dict[str, dict[object, Shape]] = {}  # by ours, since it was started
        self._prepared: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}

    def __enter__(self) -> Team:
        for module in self._members:  # all at once: to import takes seconds
            self._start(module)
        for module in list(self._processes):
            self._greet(module)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.close()
        self._cache.cleanup()

    def renew(self, module: str) -> None:
        """Start a member, or start it again; one that cannot is missing from then on."""
        if module in self.missing:
            return
        if module in self._processes:
            self._processes.pop(module).close()
        self._prepared.pop(module, None)
        if module == OURS:
            self._seen = {}
        self._start(module)
        self._greet(module)

    def _start(self, module: str) -> None:
        member = self._members[module]
        if not member.python.exists():
            self.missing[module] = "its environment is not there; `make bench` makes it"
            return
        command = [str(member.python), "-m", "benchmarks.sides.worker", module]
        environment = os.environ | {"COMPOSITE_CACHE_DIR": self._cache.name}
        if member.python == PEERS_PYTHON:
            environment["PYTHONPATH"] = str(_ROOT)  # not our packages
        self._processes[module] = Process(command, environment)

    def _greet(self, module: str) -> None:
        try:
            self.versions |= self._processes[module].ask({"ask": "versions"})
        except (Lost, Refused) as error:
            self._leave(module, str(error))

    def compare(self, work: AnyWork, *, seconds: float) -> Comparison[AnyWork]:
        """Time a work on all sides, for about so many seconds."""
        if isinstance(work, Work):
            self._settle(work)
        refused: dict[str, str] = {}
        owners: dict[str, str] = {}
        columns: dict[str, dict[str, Any]] = {}
        for module in [one for one in self._members if one in self._processes]:
            try:
                prepared = self._prepare(module, work)
            except (Lost, Refused) as error:
                refused[module] = str(error)
                continue
            columns |= prepared
            owners |= dict.fromkeys(prepared, module)
        timings = self._time(work, owners, seconds, refused)
        kept = {column: columns[column] for column in timings.seconds}
        return Comparison(work, timings, kept, refused | self.missing)

    def _settle(self, work: Work) -> None:
        """Start ours again where what it has seen would change what it compiles for this work.

        Another batch of a layer makes the batch a symbol of its kernel, and too many layers make
        symbols of all that varies: see composite/runtime/kernels/shape_policy.h.
        """
        layer = (work.layer.x(work.shape)[-1], str(work.layer.weights(work.shape)))
        layers = self._seen.setdefault(work.kind, {})
        if layers.get(layer, work.shape) != work.shape or len({*layers, layer}) > _LAYERS:
            self.renew(OURS)
            layers = self._seen[work.kind] = {}
        layers[layer] = work.shape

    def _time(
        self,
        work: Work | ModelWork,
        owners: Mapping[str, str],
        seconds: float,
        refused: dict[str, str],
    ) -> Timings:
        samples: dict[str, list[float]] = {column: [] for column in owners}
        for turn in rounds(list(owners), seconds):
            for column in turn:
                if owners[column] in refused:
                    continue
                try:
                    taken = self._ask(owners[column], {"ask": "time", "column": column})
                except (Lost, Refused) as error:
                    refused[owners[column]] = str(error)
                    continue
                samples[column].append(taken / self._nodes(owners[column], work))
        whole = {c: np.array(s) for c, s in samples.items() if owners[c] not in refused}
        return Timings(whole)

    def _nodes(self, module: str, work: Work | ModelWork) -> int:
        """How many nodes a run of a member has."""
        if isinstance(work, ModelWork) or self._members[module].single:
            return 1
        return work.depth

    def _prepare(self, module: str, work: Work | ModelWork) -> dict[str, Any]:
        """The columns of a member for a work; one that has it prepared already is not asked."""
        if self._members[module].single and isinstance(work, Work):
            work = replace(work, depth=1, distinct=False)
        asked, columns = self._prepared.pop(module, ({}, {}))
        question = {"ask": "prepare", "work": asdict(work)}
        if asked != question:
            columns = self._ask(module, question)
        self._prepared[module] = (question, columns)
        return columns

    def _ask(self, module: str, question: dict[str, Any]) -> Any:
        try:
            return self._processes[module].ask(question, timeout=self._patience)
        except Lost as lost:
            self._leave(module, str(lost))
            raise

    def _leave(self, module: str, reason: str) -> None:
        self.missing[module] = reason
        self._processes.pop(module).close()
