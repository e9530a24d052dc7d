"""Tuning databases: for each kernel, every candidate that was tried, and the winner.

A candidate is identified by the digest of its loops, so that times belong to the measured code. A
compiler with more candidates still finds the old ones, and a compiler that writes different loops
does not use their times. Times belong to a kind of machine. Merging two files takes their union; if
they disagree, the result with more rounds is kept.

The file is JSON, so that people can read it and keep it with their sources. It can only choose
among the compiler's candidates.

Not for: when to tune, which record serves a call (`chosen`).
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import math
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from composite.binding import json_text
from composite.compiler.tvm.choices import Value

FORMAT = 1


class Measured(NamedTuple):
    """The times of a candidate and of the default kernel on one kind of machine."""

    us: float
    default_us: float
    ratio: float  # the ratio of the two, median over the rounds
    low: float  # its quartiles
    high: float
    rounds: int
    against: str  # the code of the default kernel


@dataclass
class Trial:
    """A candidate: its choices, and its times by machine or the reason why it is not used."""

    choices: dict[str, Value]
    machines: dict[str, Measured] = field(default_factory=dict)
    error: str = ""


class Winner(NamedTuple):
    """The winner on one kind of machine, which is the default if no candidate was faster.

    `measured` comes from a second, longer comparison.
    """

    code: str
    measured: Measured
    trials: int  # the number of candidates


@dataclass
class Record:
    """The results for one kernel: `op` and `call` are for people, trials are keyed by code."""

    op: str
    call: str
    target: str
    trials: dict[str, Trial] = field(default_factory=dict)
    winners: dict[str, Winner] = field(default_factory=dict)  # by machine

    def merge(self, other: Record, *, newer: bool = False) -> None:
        """Merges another record of the same kernel, which takes precedence if it is `newer`."""
        for code, theirs in other.trials.items():
            mine = self.trials.setdefault(code, Trial(theirs.choices))
            for machine, measured in theirs.machines.items():
                known = mine.machines.get(machine)
                if known is None or _weight(measured) > _weight(known):
                    mine.machines[machine] = measured
            mine.error = "" if mine.machines else max(mine.error, theirs.error)
        for machine, winner in other.winners.items():
            own = self.winners.get(machine)
            if own is None or newer or _rank(winner) > _rank(own):
                self.winners[machine] = winner


def _weight(measured: Measured) -> tuple[Any, ...]:
    # A total order: the order of merging is irrelevant.
    return (measured.rounds, *measured)


def _rank(winner: Winner) -> tuple[Any, ...]:
    return (winner.trials, *_weight(winner.measured), winner.code)


class Damaged(ValueError):  # noqa: N818 - says what the file is
    """The file is not a database, or has another version; the message says what to do."""


class Database:
    """The content of a file; see the module."""

    def __init__(self, records: dict[str, Record] | None = None) -> None:
        self.records = records if records is not None else {}

    @classmethod
    def read(cls, path: Path) -> Database:
        """Reads a file. OSError if that fails, or it is missing; Damaged if it is no database."""
        try:
            return cls.parse(path.read_text(encoding="utf-8"))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, Damaged):
                raise Damaged(f"{path}: {error}") from error
            raise Damaged(
                f"{path} is no tuning database ({error}): remove it, and tune again"
            ) from error

    @classmethod
    def parse(cls, text: str) -> Database:
        """Parses a database. ValueError, KeyError or TypeError if it is invalid."""
        content = json_text.parsed(text)
        if content["format"] != FORMAT:
            raise Damaged(
                f"its format is {content['format']!r}, and this version reads {FORMAT}: tune again"
            )
        return cls({str(key): _record(value) for key, value in content["kernels"].items()})

    def text(self) -> str:
        """The database as text, equal for equal contents."""
        kernels = {key: dataclasses.asdict(self.records[key]) for key in sorted(self.records)}
        for record in kernels.values():
            for trial in record["trials"].values():
                trial["machines"] = _plain(trial["machines"])
            record["winners"] = {
                machine: {**winner._asdict(), "measured": winner.measured._asdict()}
                for machine, winner in sorted(record["winners"].items())
            }
        return json.dumps({"format": FORMAT, "kernels": kernels}, indent=1, sort_keys=True) + "\n"

    def merge(self, other: Database, *, newer: bool = False) -> None:
        """Merges another database. The order does not matter unless that one is `newer`."""
        for key, record in other.records.items():
            self.records.setdefault(key, Record(record.op, record.call, record.target)).merge(
                record, newer=newer
            )

    def write(self, path: Path) -> None:
        """Replaces a file atomically. OSError if that fails."""
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(self.text())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def add_to(self, path: Path) -> None:
        """Merges new results into a file, which is created if it is missing.

        Other processes may do so at the same time. OSError or Damaged, as `read`.
        """
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(path):
            both = Database.read(path) if path.exists() else Database()
            both.merge(self, newer=True)
            both.write(path)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _plain(machines: Mapping[str, Measured]) -> dict[str, dict[str, Any]]:
    return {machine: measured._asdict() for machine, measured in sorted(machines.items())}


def _record(value: Mapping[str, Any]) -> Record:
    return Record(
        op=str(value["op"]),
        call=str(value["call"]),
        target=str(value["target"]),
        trials={str(code): _trial(one) for code, one in value["trials"].items()},
        winners={
            str(machine): Winner(str(one["code"]), _measured(one["measured"]), int(one["trials"]))
            for machine, one in value["winners"].items()
        },
    )


def _trial(value: Mapping[str, Any]) -> Trial:
    choices = {str(name): _value(one) for name, one in value["choices"].items()}
    machines = {str(machine): _measured(one) for machine, one in value["machines"].items()}
    return Trial(choices, machines, str(value["error"]))


def _value(value: object) -> Value:
    if not isinstance(value, int | str):
        raise TypeError(f"{value!r} is no value of a choice")
    return value


def _measured(value: Mapping[str, Any]) -> Measured:
    us, default_us, ratio, low, high = (float(value[name]) for name in Measured._fields[:5])
    if not all(math.isfinite(number) and number > 0 for number in (us, default_us, ratio)):
        raise ValueError("a time is not above zero")
    return Measured(us, default_us, ratio, low, high, int(value["rounds"]), str(value["against"]))
