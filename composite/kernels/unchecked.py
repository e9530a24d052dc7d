"""Unchecked kernels for GPUs from built libraries, which are checked and measured where they run.

The library was built on a machine without such a GPU. The first call that a kernel covers requests
it, as calls request kernels that have to be made, but nothing is compiled.

Not for: making kernels (produce.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.binding.log import logger
from composite.binding.records import NodeDef
from composite.kernels import produce, refusals, verdicts, verify
from composite.kernels.cache import Cache
from composite.kernels.key import sha256
from composite.kernels.produce import Outcome


def serve(
    request: KernelRequest,
    cache: Cache,
    stopping: Callable[[], bool],
    *,
    must_be_known: bool = False,
) -> Outcome:
    """Checks and measures the kernel of a request, or uses the results of an earlier process.

    Takes the arguments of produce.produce. Raises verify.Mismatch, Claimed as produce does, and
    gpu.Missing if this process does not have the GPU.
    """
    brought = KernelRecord.parse(NodeDef.FromString(request.unchecked))
    brought = replace(brought, device=request.device)  # portable code names its lowest level
    which = sha256(brought.serialize() + request.image)  # independent of the order of fields
    key = produce.identity(request).entry_key(f"{brought.target}, brought as {which}")
    with cache.claims.claim(key):
        refusals.check(cache, key, request.op)
        known = produce.cached(request, cache, key)
        if must_be_known and (known is None or verdicts.stored(cache, key, request) is None):
            raise produce.Unknown(produce.NO_THREADS)
        made = _checked(request, cache, key, brought) if known is None else known[0]
        return produce.settled(request, cache, key, made, stopping)  # its code is in the library


def _checked(request: KernelRequest, cache: Cache, key: str, brought: KernelRecord) -> KernelRecord:
    try:
        made = produce.checked(request, brought, request.image)
    except verify.Mismatch as error:
        refusals.note(cache, key, request, error)
        raise
    logger.info("%s: kernel %s of a library is right on this GPU", request.op, made.name)
    made = replace(made, verdict="unmeasured")
    cache.store(key, made.serialize(), request.image)
    return made
