"""The place in the author's source that a node of an expansion comes from.

The runtime gives each node its place as its "original name", "Mul (ops.py:12:5)", which TensorFlow
prints in errors of that node. It keeps it out of attributes, and so out of keys.
"""

from __future__ import annotations

import re
from typing import Any

_ORIGINAL = re.compile(r".* \((?P<place>.+)\)", re.DOTALL)


def of_node(node: Any) -> str:
    """The place in the author's source that the node comes from; "" if it is not known."""
    for original in node.experimental_debug_info.original_node_names:
        if found := _ORIGINAL.fullmatch(original):
            return found["place"]
    return ""
