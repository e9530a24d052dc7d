"""`op.use_kernel`: a kernel of the author's own, for stated calls of an op.

Not for: what becomes of the kernel (composite/kernels/given.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from composite.kernels.given import Given
    from composite.ops.op import CompositeOp


def use(op: CompositeOp, kernel: Any, call: Mapping[str, Any], function: str | None) -> Given:
    """The kernel, installed for the calls of an op that are stated so; see CompositeOp."""
    from composite.aot import prebuild
    from composite.kernels import given

    request = prebuild.request(op, call)
    try:
        return given.give(request, kernel, function)
    except given.Refused as refused:
        described = prebuild.described(request)
        raise ValueError(
            f"the kernel for {op.__name__}({described}) is refused: {refused}"
        ) from refused
