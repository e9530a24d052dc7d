"""Who is told without a listener: a terminal, a log, or nobody."""

from __future__ import annotations

import io
import logging
import os
import sys
import threading
import time
from contextlib import redirect_stderr

import pytest

from composite.binding.log import logger
from composite.progress import activity, listening
from composite.progress.event import ProgressEvent


class Terminal(io.StringIO):
    """What is written to it stays."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    return Terminal()


def bake(parts: int = 2) -> None:
    with activity.told("bake[red]"):
        activity.step("mix")
        for i in range(parts):
            activity.part(f"loaf {i}", i, parts)
            time.sleep(0.15)


def test_nothing_is_printed_where_nobody_asked(capfd: pytest.CaptureFixture[str]) -> None:
    bake()
    assert capfd.readouterr() == ("", "")


def test_a_terminal_has_a_bar_for_a_while(terminal: Terminal) -> None:
    with redirect_stderr(terminal):
        bake()
        assert sys.stderr is terminal
    shown = terminal.getvalue()
    assert "bake[red]" in shown
    assert "mix loaf 1" in shown
    assert "1/2" in shown
    assert "about 0 s left" in shown
    assert "\x1b[2K\x1b[?25h" in shown[-20:]  # the line is cleared
    assert shown.count("\x1b[?25h") == 1  # and the cursor is back
    with redirect_stderr(terminal), activity.told("nothing happens"):
        pass
    assert terminal.getvalue() == shown


def test_what_is_logged_meanwhile_is_not_torn(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from composite.binding import log

    handler = log._ToStandardError()
    monkeypatch.setattr(logger, "handlers", [handler])
    with redirect_stderr(terminal), activity.told("bake"):
        activity.step("mix")
        logger.warning("the oven is hot")
    assert "\x1b[2Kthe oven is hot\n" in terminal.getvalue()


def test_calls_of_several_threads_share_a_display(terminal: Terminal) -> None:
    threads = [threading.Thread(target=bake, args=(3,)) for _ in range(4)]
    with redirect_stderr(terminal):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sys.stderr is terminal
        shown = terminal.getvalue()
        bake()
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") <= 4
    assert len(terminal.getvalue()) > len(shown)


def interrupted() -> None:
    with activity.told("bake"):
        activity.step("mix")
        raise KeyboardInterrupt


def test_an_interruption_gives_the_terminal_back(terminal: Terminal) -> None:
    with redirect_stderr(terminal):
        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert sys.stderr is terminal
    assert terminal.getvalue().count("\x1b[?25h") == 1


class Gone(Terminal):
    """A terminal that was closed."""

    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


def test_a_call_goes_on_when_its_terminal_is_gone(terminal: Terminal) -> None:
    with redirect_stderr(Gone()):
        bake()
        assert isinstance(sys.stderr, Gone)
    with redirect_stderr(terminal):
        bake()
    assert "mix loaf 1" in terminal.getvalue()


def test_a_forked_child_draws_nothing_of_its_parent(terminal: Terminal) -> None:
    with redirect_stderr(terminal), activity.told("bake"):
        activity.step("mix")
        before = terminal.getvalue()
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0
    if not child:
        drawn = terminal.getvalue() != before
        os._exit(int(drawn or listening._terminal._display is not None))


def test_the_log_has_a_line_now_and_then(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "_EVERY", 0.1)
    caplog.set_level(logging.INFO, logger="composite")
    with activity.told("bake"):
        activity.step("mix")
        for i in range(3):
            activity.part(f"loaf {i}", i, 4)
            activity.part(f"loaf {i} again", i, 4)
        time.sleep(0.35)
    lines = caplog.messages
    assert 2 <= len(lines) <= 4
    assert lines[0] == "bake: mix loaf 2 again, 2 of 4 done, 0 s, about 0 s left"
    time.sleep(0.2)
    assert caplog.messages == lines
    caplog.set_level(logging.WARNING, logger="composite")
    with activity.told("bake"):
        activity.step("mix")
        time.sleep(0.2)
    assert caplog.messages == lines


def test_lines_that_come_later_count_on() -> None:
    event = ProgressEvent("check", "loaf", 1, 3, seconds=10.0, expected=4.0)
    assert listening.line("b", listening.later(event, 3.0)) == (
        "b: check loaf, 1 of 3 done, 13 s, about 1 s left"
    )
    assert "about 0 s left" in listening.line("b", listening.later(event, 9.0))
    assert listening.line("b", ProgressEvent("mix", seconds=1.4)) == "b: mix, 1 s"


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_a_process_without_a_standard_error(stream: io.StringIO | None) -> None:
    if stream is not None:
        stream.close()
    with redirect_stderr(stream):
        bake(1)
