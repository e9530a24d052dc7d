"""Messages arrive as they were sent, in whatever parts."""

from __future__ import annotations

import socket
import threading

import pytest

from composite.compiler_process import messages
from composite.compiler_process.messages import Message

MESSAGE = Message({"text": "größe", "list": [1, [2.5, None]]}, [b"", b"\0\xff" * 5, b"{}"])


def test_no_part_of_a_message_is_one() -> None:
    content = MESSAGE.encoded()
    assert messages.decoded(content) == MESSAGE
    for end in range(len(content)):
        assert messages.decoded(content[:end]) is None


def test_a_message_in_parts() -> None:
    ours, theirs = socket.socketpair()
    big = Message({}, [bytes(range(256)) * 20_000])
    with ours, theirs:
        sender = threading.Thread(target=lambda: theirs.sendall(big.encoded()))
        sender.start()
        assert messages.receive(ours) == big
        sender.join()


def test_the_other_side_hangs_up() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            theirs.sendall(MESSAGE.encoded()[:-1])
        with pytest.raises(EOFError):
            messages.receive(ours)
