"""The file of what tuning found: for each kernel, every candidate that was tried, and which won.

A candidate is named by the digest of its loops, so a time belongs to the code that was measured: a
compiler with more candidates finds the old ones there, and one that writes other loops does not
take their times for its own. Times belong to a kind of machine. Files are merged by union; what two
know differently, the one with more rounds knows better.

The file is JSON, for people to read and to keep beside sources. It chooses among candidates that
the compiler has, and can do nothing else.

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
    """A candidate beside the default kernel, on one kind of machine."""

    us: float
    default_us: float
    ratio: float  # of the two, the median over the rounds
    low: float  # its quartiles
    high: float
    rounds: int
    against: str  # the default's code


@dataclass
class Trial:
    """A candidate: what was chosen, and its times by machine, or why it is not used."""

    choices: dict[str, Value]
    machines: dict[str, Measured] = field(default_factory=dict)
    error: str = ""


class Winner(NamedTuple):
    """What a kernel is to be on one kind of machine; its code is the default's if none was faster.

    `measured` is of a second, longer comparison.
    """

    code: str
    measured: Measured
    trials: int  # how many candidates it was chosen from


@dataclass
class Record:
    """All that is known of one kernel: `op` and `call` are for people, trials by their code."""

    op: str
    call: str
    target: str
    trials: dict[str, Trial] = field(default_factory=dict)
    winners: dict[str, Winner] = field(default_factory=dict)  # by machine

    def merge(self, other: Record, *, newer: bool = False) -> None:
        """Takes in what another record of the same kernel knows, which may be known to be newer."""
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
    return (measured.rounds, *measured)  # a total order: whoever is merged first


def _rank(winner: Winner) -> tuple[Any, ...]:
    return (winner.trials, *_weight(winner.measured), winner.code)


class Damaged(ValueError):  # noqa: N818 - says what the file is
    """The file is no database, or one of another version; the message says what to do."""


class Database:
    """The content of a file; see the module."""

    def __init__(self, records: dict[str, Record] | None = None) -> None:
        self.records = records if records is not None else {}

    @classmethod
    def read(cls, path: Path) -> Database:
        """OSError when it cannot be read, Damaged when it is no database. Missing is not empty."""
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
        """The database of a text; ValueError, KeyError or TypeError when it is none."""
        content = json_text.parsed(text)
        if content["format"] != FORMAT:
            raise Damaged(
                f"its format is {content['format']!r}, and this version reads {FORMAT}: tune again"
            )
        return cls({str(key): _record(value) for key, value in content["kernels"].items()})

    def text(self) -> str:
        """The same for the same content."""
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
        """Takes in another one; the order makes no difference, unless that one is `newer`."""
        for key, record in other.records.items():
            self.records.setdefault(key, Record(record.op, record.call, record.target)).merge(
                record, newer=newer
            )

    def write(self, path: Path) -> None:
        """Replaces a file by this, in one step. OSError when that cannot be done."""
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
        """Merges what was just found into a file, which is made where there is none.

        Others may do so meanwhile.

        OSError or Damaged, as `read`.
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
