"""Of the processes that share a cache folder, one makes each entry."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from composite.kernels import claims
from composite.kernels.claims import Claimed, Claims
from tests.composite.cluster_processes import Process

KEY, OTHER = "0" * 31 + "7", "f" * 32


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Process]:
    """Another process, which holds the claim of KEY."""

    def hold(process: Process) -> None:
        with Claims(tmp_path).claim(KEY):
            process.send("held")
            process.receive()
        process.send("released")

    process = Process(hold)
    assert process.receive() == "held"
    yield process
    process.end()


def test_what_another_process_makes_is_claimed(tmp_path: Path, elsewhere: Process) -> None:
    own = Claims(tmp_path)
    with pytest.raises(Claimed), own.claim(KEY):
        pass
    with own.claim(OTHER):
        pass
    elsewhere.send("release")
    assert elsewhere.receive() == "released"
    with own.claim(KEY):
        pass


@pytest.mark.parametrize("has_folder", [True, False])
def test_what_another_thread_makes_is_claimed(tmp_path: Path, *, has_folder: bool) -> None:
    own = Claims(tmp_path if has_folder else None)
    with own.claim(KEY):
        with pytest.raises(Claimed, match="thread"), own.claim(KEY):
            pass
        with own.claim(OTHER):
            pass
        with pytest.raises(Claimed), own.claim(KEY):  # it is held still
            pass
    with own.claim(KEY):
        pass


def test_a_claim_ends_with_its_process(tmp_path: Path) -> None:
    def hold(process: Process) -> None:
        with Claims(tmp_path).claim(KEY):
            process.send("held")
            process.receive()

    process = Process(hold)
    assert process.receive() == "held"
    process.end()
    with Claims(tmp_path).claim(KEY):
        pass


@pytest.mark.usefixtures("elsewhere")
def test_a_process_that_never_ends_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = itertools.count(0.0, claims.PATIENCE * 0.75)
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    own = Claims(tmp_path)
    for _ in range(2):
        with pytest.raises(Claimed), own.claim(KEY):
            pass
    with own.claim(KEY):
        pass


def test_an_entry_is_released_where_making_it_fails(tmp_path: Path) -> None:
    own = Claims(tmp_path)
    with pytest.raises(ValueError, match="no kernel"), own.claim(KEY):
        raise ValueError("no kernel")

    def claim(process: Process) -> None:
        with Claims(tmp_path).claim(KEY):
            process.send("held")

    other = Process(claim)
    assert other.receive() == "held"
    other.end()


def test_a_folder_without_locks_grants_each_claim(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    (tmp_path / "claims").mkdir()  # no file that can be opened
    own = Claims(tmp_path)
    with own.claim(KEY), own.claim(OTHER):
        pass
    (told,) = caplog.messages
    assert told.startswith(f"processes that share {tmp_path} may make a kernel twice: ")
    with Claims(None).claim(KEY):
        pass


def test_the_file_is_open_while_a_claim_is_held(tmp_path: Path) -> None:
    def opened() -> int:
        return sum(
            path.resolve() == tmp_path / "claims" for path in Path("/proc/self/fd").iterdir()
        )

    own = Claims(tmp_path)
    with own.claim(KEY):
        with own.claim(OTHER):
            assert opened() == 1
        assert opened() == 1

        def claim(process: Process) -> None:
            try:
                with Claims(tmp_path).claim(KEY):
                    process.send("claimed")
            except Claimed:
                process.send("refused")

        other = Process(claim)
        assert other.receive() == "refused"
        other.end()
    assert opened() == 0
