"""`composite.options`: which path the calls made under it may take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from composite.binding import settings
from composite.jit import worker
from composite.saving import portable_node


@contextmanager
def options(  # noqa: PLR0913 - one for each option
    *,
    backend: str | None = None,
    numerics: str | None = None,
    xla: float | str | None = None,
    regions: bool | None = None,
    portable: bool | None = None,
    check_numerics: bool | None = None,
) -> Iterator[None]:
    """Chooses how composite ops run, for the calls made inside it on this thread.

    Args:
        backend: "auto" runs a kernel where one covers the call and was measured to be no slower
            than TensorFlow's own ops; "tvm" runs a kernel or raises (the first call waits for the
            compiler); "tf" always runs TensorFlow's ops.
        numerics: "fast" allows kernels, whose error against float64 `composite.explain` states;
            "strict" guarantees the results of TensorFlow's own ops, bit for bit: no kernel runs.
            With backend="tvm" and "strict", only an exact kernel runs (one that moves data, or
            computes with integers); other calls raise tf.errors.InvalidArgumentError.
            "invariant" gives a row the same bits alone, in any batch and with any number of
            threads: a call waits for a kernel that adds up in one order, and runs it whether or not
            it is faster. Where there is no such kernel, TensorFlow's ops run, and the log has a
            warning; with backend="tvm" the call raises. See docs/numerics.md.
        xla: what XLA compiles (jit_compile=True) calls kernels where they are faster than XLA's own
            code: for how many seconds a compilation waits for the kernels of calls that have none
            yet; with 0 it takes what is ready. "never": XLA compiles TensorFlow's ops. See
            docs/xla.md.
        regions: whether parts of a graph for which nobody wrote a composite become nodes too, which
            may have kernels. Decided for a function when TensorFlow prepares it, which is at its
            first call, and for good. See docs/regions.md.
        portable: whether each call, and its gradient, is made of TensorFlow's own ops, for workers
            of a cluster that do not have the op and for DTensor. See docs/clusters.md.
        check_numerics: whether an infinity or a NaN that arises inside a body, or inside its
            gradient, is a tf.errors.InvalidArgumentError that names the author's line. Calls are
            portable ones then. Numbers that are given, or only moved, are not checked.

    Raises:
        ValueError: for another value.

    An option that is not given stays as it is outside. The defaults are the environment variables
    COMPOSITE_BACKEND, COMPOSITE_NUMERICS, COMPOSITE_XLA and COMPOSITE_REGIONS, or else "auto",
    "fast", 30 seconds and no.
    """
    if portable or check_numerics:
        portable_node.enable()
    with settings.options(
        backend=backend,
        numerics=numerics,
        xla=xla,
        regions=regions,
        portable=portable,
        check_numerics=check_numerics,
    ):
        if regions:
            worker.start_for_regions()
        yield
