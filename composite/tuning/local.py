"""Measures kernels on this machine: in nodes of a graph, as the verdict on a kernel is measured.

The nodes run whichever kernel was installed last, so installing the one or the other in turn lets
one graph run both, on the same inputs. Both are left in the process, unmeasured: calls do not see
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace

from composite.binding import native
from composite.binding.kernel_request import KernelRequest
from composite.kernels import key as keys
from composite.kernels import shapes, verdicts
from composite.kernels.expansions import expand
from composite.kernels.tuned import Measured
from composite.measuring.measure import Chain
from composite.measuring.rounds import of_one
from composite.ops import functions
from composite.tuning import rounds
from composite.tuning.space import Built

_RUNS = 2  # of a kernel in a round, after one that warms up; the faster counts


class Local:
    """The measurer of this process; `default` is the kernel to compare with."""

    workers = 1

    def __init__(self, request: KernelRequest, default: Built) -> None:
        self.machine = keys.machine()
        self._request = request
        self._default = default
        self._known: set[str] = set()
        self._node = verdicts.node_of(request)
        kernel = default.kernel
        self._values = shapes.to_measure(request, kernel.minimums, kernel.divisors)
        self._chains: dict[int, Chain] = {}

    def submit(self, candidate: Built, seconds: float) -> Future[Measured]:
        """Measures, and then gives what was found, at the size that was asked for."""
        future: Future[Measured] = Future()
        try:
            future.set_result(self._compare(0, candidate, seconds))
        except Exception as error:  # noqa: BLE001 - for whoever asks for the result
            future.set_exception(error)
        return future

    def elsewhere(self, candidate: Built, seconds: float) -> Sequence[Measured]:
        """The same at the other sizes of the class, for so many seconds each."""
        return [self._compare(i, candidate, seconds) for i in range(1, len(self._values))]

    def close(self) -> None:
        """Nothing is held."""

    def _compare(self, number: int, candidate: Built, seconds: float) -> Measured:
        self._activate(self._default)
        chain = self._chains.get(number)
        if chain is None:
            chain = self._chains[number] = self._chain(number)
        base = min(chain.overhead() for _ in range(5))
        found = rounds.run(
            self._runner(chain, self._default, base), self._runner(chain, candidate, base), seconds
        )
        return rounds.summary(found, self._default.code)

    def _chain(self, number: int) -> Chain:
        exact = shapes.substitute(self._request.in_shapes, self._values[number])
        dtypes = functions.body(expand(self._request, exact)).input_dtypes
        sizes = self._request.size_inputs
        specs = verdicts.specs(shapes.of_inputs(exact, sizes), dtypes)
        values = shapes.of_sizes(exact, sizes)
        return Chain(*self._node, specs, self._request.constants, values)

    def _runner(self, chain: Chain, built: Built, base: float) -> Callable[[], float]:
        def run() -> float:
            self._activate(built)
            chain.seconds()
            return of_one(min(chain.seconds() for _ in range(_RUNS)), base, chain.copies)

        return run

    def _activate(self, built: Built) -> None:
        """Makes it the newest, which a node with backend="tvm" takes."""
        record = built.record
        if built.record.name in self._known:
            record = replace(record, library=None)
        native.call("composite_install", record.to_node_def())
        self._known.add(built.record.name)
