"""Refusals by the compiler or by a kernel's check, stored in the cache beside the kernels.

A refusal follows from the request, the compiler and the target, all of which the key covers. So
other processes do not compile such a kernel again, and leave the refused nodes out of regions from
the start. Not for: failures that may not recur, such as a compiler that was killed.
"""

from __future__ import annotations

import functools
import json
from typing import Any

from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.binding import json_text, native
from composite.binding.kernel_request import KernelRequest
from composite.binding.log import logger
from composite.binding.records import record
from composite.compiler.tvm import NotCovered
from composite.kernels import key as keys
from composite.kernels.cache import Cache, open_default
from composite.kernels.shapes import symbols
from composite.kernels.verify import Mismatch

_REFUSED_NODES = "RefusedNodes"  # as composite/runtime/api/model_kernels.h has it


def check(cache: Cache, key: str, op: str) -> None:
    """Raises the error that was noted for this key, NotCovered or Mismatch, if there is one."""
    content = cache.load_refusal(key)
    if content is None:
        return
    known = json_text.parsed(content)
    logger.info("%s: no kernel, as was found before: %s", op, known["reason"])
    if known["kind"] == "mismatch":
        raise Mismatch(known["reason"])
    raise NotCovered(known["reason"], known["place"], known["sizes"], known["node"])


def note(cache: Cache, key: str, request: KernelRequest, error: NotCovered | Mismatch) -> None:
    """Makes `check` raise this error from now on, in all processes with this cache."""
    content: dict[str, Any] = {"kind": "mismatch", "reason": str(error), "toolchain": _toolchain()}
    if isinstance(error, NotCovered):
        content |= {"kind": "not covered", "reason": error.reason, "place": error.place}
        content |= {"sizes": list(error.sizes), "node": error.node}
        if node := refused_node(request, error):
            content |= {"function": request.program, "refused": node}
    cache.store_refusal(key, json.dumps(content, sort_keys=True).encode())


def refused_node(request: KernelRequest, answer: NotCovered) -> str:
    """The node of the request's function that has no kernel at any size; "" if none is known."""
    is_general = bool(answer.sizes or symbols(request.in_shapes) or request.gpu)
    return "" if is_general else answer.node


def refuse(function: str, node: str) -> None:
    """Keeps a node of a region's function out of the regions of this process."""
    found = GraphDef(node=[record(_REFUSED_NODES, function, nodes=[node])])
    native.call("composite_refuse_nodes", found)


@functools.cache
def announce() -> None:
    """Tells the runtime which nodes of regions any process was refused. Runs once."""
    found = GraphDef()
    for content in open_default().refusals():
        known = json_text.parsed(content)
        if known.get("function") and known["toolchain"] == _toolchain():
            nodes = [known["refused"]]
            found.node.append(record(_REFUSED_NODES, known["function"], nodes=nodes))
    if found.node:
        native.call("composite_refuse_nodes", found)


@functools.cache
def _toolchain() -> str:
    return keys.toolchain_key()
