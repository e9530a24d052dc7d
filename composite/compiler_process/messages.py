"""Messages between a client and the compiler: facts as JSON, and byte strings beside them.

    length of the JSON (4 bytes, little endian), the JSON, the byte strings

The JSON is {"facts": ..., "sizes": [...]}: the sizes of the byte strings that follow. Nothing in a
message is code, and nothing is unpickled.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

_LENGTH = struct.Struct("<I")
_PART = 1 << 20


class Message(NamedTuple):
    """What is said at a time."""

    facts: dict[str, Any]
    data: Sequence[bytes] = ()

    def encoded(self) -> bytes:
        """The bytes on the wire."""
        head = {"facts": self.facts, "sizes": [len(one) for one in self.data]}
        text = json.dumps(head, separators=(",", ":")).encode()
        return b"".join([_LENGTH.pack(len(text)), text, *self.data])


def decoded(content: bytes | bytearray) -> Message | None:
    """The message that some bytes are; None while more of them have to come."""
    start = _LENGTH.size
    if len(content) < start:
        return None
    end = start + _LENGTH.unpack_from(content)[0]
    if len(content) < end:
        return None
    head = json.loads(bytes(content[start:end]))
    if len(content) < end + sum(head["sizes"]):
        return None
    data = []
    for size in head["sizes"]:
        data.append(bytes(content[end : end + size]))
        end += size
    return Message(head["facts"], data)


def receive(conversation: socket.socket) -> Message:
    """The next message. EOFError when the other side has hung up."""
    content = bytearray()
    while (message := decoded(content)) is None:
        part = conversation.recv(_PART)
        if not part:
            raise EOFError("the other side has hung up")
        content += part
    return message
