"""`op.use_kernel`: a kernel of the author's own, for stated calls of an op.

Not for: what becomes of the kernel (composite/kernels/given.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from composite.kernels.given import Given
    from composite.ops.op import CompositeOp


def use(  # noqa: PLR0913 - those of CompositeOp.use_kernel
    op: CompositeOp,
    kernel: Any,
    call: Mapping[str, Any],
    *,
    function: str | None,
    device: str,
    launches: Sequence[Any],
) -> Given:
    """The kernel, installed for the calls of an op that are stated so; see CompositeOp."""
    from composite.aot import stated_calls
    from composite.kernels import given, given_gpu

    if not re.fullmatch(r"CPU|cuda:sm_\d+", device):
        raise ValueError(
            f'device={device!r}: write "CPU", or the level of the GPUs as "cuda:sm_90"'
        )
    request, *_ = stated_calls.requests(op, call, "" if device == "CPU" else device)
    try:
        if not request.device:
            if launches:
                raise given.Refused('launches= is of a kernel for a GPU: state device="cuda:sm_90"')
            return given.give(request, kernel, function)
        names = stated_calls.names(op, call)
        return given_gpu.give(request, kernel, launches, names)
    except given.Refused as refused:
        described = stated_calls.described(request)
        raise ValueError(
            f"the kernel for {op.__name__}({described}) is refused: {refused}"
        ) from refused
