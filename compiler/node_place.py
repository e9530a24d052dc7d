"""Where the author wrote what became a node of an expansion.

The runtime gives each node its place as its "original name", "Mul (ops.py:12:5)", which TensorFlow
prints in errors of that node. It keeps it out of attributes, and so out of keys.
"""

from __future__ import annotations

import re
from typing import Any

_ORIGINAL = re.compile(r".* \((?P<place>.+)\)", re.DOTALL)


def of_node(node: Any) -> str:
    """Where the author wrote what became the node; "" where that is not known."""
    for original in node.experimental_debug_info.original_node_names:
        if found := _ORIGINAL.fullmatch(original):
            return found["place"]
    return ""
