"""The expansion of a call by an op of a built library, in a process of its own.

The request comes on stdin, the expansion goes to stdout: a GraphDef whose library's first function
it is, of stock ops alone.
"""

from __future__ import annotations

import os
import sys

from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.aot.loading import load
from composite.binding import native
from composite.saving.portable import portable


def main(library: str) -> None:
    """Answers one request."""
    answer = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else is printed
    load(library)
    reply = native.call("composite_expand", sys.stdin.buffer.read())
    expansion = portable(GraphDef(library=FunctionDefLibrary.FromString(reply)))
    with os.fdopen(answer, "wb") as stream:
        stream.write(expansion.SerializeToString())
