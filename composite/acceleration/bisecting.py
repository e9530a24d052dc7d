"""`composite.bisect`: the region that makes a function's results differ."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composite.acceleration import comparing, model_folder
from composite.acceleration.accelerate import Called, call_of, entries, of_folder
from composite.acceleration.comparing import Terms
from composite.acceleration.graph import Region
from composite.acceleration.tracing import Known, traced
from composite.binding import native
from composite.binding.printed import Printed
from composite.binding.records import record
from composite.jit import worker
from composite.trials import drawing, results
from composite.trials.results import Deviation

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class BisectReport(Printed):
    """Which region makes results differ.

    Attributes:
        name: the function's.
        regions: how many different regions it has.
        deviation: how far its results moved with all of them.
        region: with which, beside those before it, results first moved too far; None if they do
            not.
        alone: how far they move with that region alone.
    """

    name: str
    regions: int
    deviation: Deviation
    region: Region | None = None
    alone: Deviation | None = None

    def print_to(self, console: Console) -> None:
        """Prints what was found."""
        far = f"results within {self.deviation.distance:.2g} of the largest |y|"
        title = f"{self.name}, {self.regions} regions: {far}"
        console.print(title, highlight=False, markup=False)
        if self.region is None or self.alone is None:
            bound = f"{self.deviation.bound:.2g} is allowed"
            console.print(f"no region differs: {bound}", highlight=False)
            return
        counts = ", ".join(f"{n} {op}" for op, n in self.region.ops.most_common())
        console.print(f"region {self.region.name[-8:]} differs: {counts}", highlight=False)
        console.print(
            f"with it alone output {self.alone.output} is {self.alone.distance:.2g} away, "
            f"{self.alone.bound:.2g} is allowed",
            highlight=False,
        )


def bisect(  # noqa: PLR0913 - what a trial is made with
    model: Callable[..., Any] | str | os.PathLike[str],
    *inputs: Any,
    signature: str = "serving_default",
    size: int = drawing.SIZE,
    deny: Sequence[str] = (),
    rtol: float | None = None,
    timeout: float | None = None,
) -> BisectReport:
    """Finds the region with which a function's results move further than `rtol`.

    The function is run without regions, with all, and then with ever fewer of them: half, a
    quarter, and so on, until one is left that makes the difference.

    Args:
        model: as `composite.accelerate` takes it.
        *inputs: the arguments of one call, as `composite.accelerate` takes them.
        signature: for the folder of a SavedModel, which of its signatures is looked at.
        size: what drawn inputs have for a dim that is not known.
        deny: what stays outside of regions, as `composite.accelerate` has it.
        rtol: how far results may be from those without regions, as `composite.accelerate` has it.
        timeout: seconds to wait for kernels at most.

    Returns:
        A BisectReport; `print` it.

    Raises:
        TypeError, ValueError, FileNotFoundError, ImportError: as `composite.accelerate`.
    """
    terms = Terms(entries(deny), rtol, timeout)
    if isinstance(model, str | os.PathLike):
        asked = model_folder.Call(of_folder(inputs), [signature], size, terms)
        function, given = model_folder.call_of_signature(Path(model), signature, asked)
        called = Called(function, signature, given)
    else:
        called = call_of(model, inputs, size)
    trials = _Trials(called, terms)
    regions = trials.regions
    deviation = trials.deviation(regions)
    if deviation.is_small:
        return BisectReport(called.name, len(regions), deviation)
    least, most = 0, len(regions)  # with so many results are close, with so many they are not
    while most - least > 1:
        half = (least + most) // 2
        is_small = trials.deviation(regions[:half]).is_small
        least, most = (half, most) if is_small else (least, half)
    region = regions[most - 1]
    return BisectReport(called.name, len(regions), deviation, region, trials.deviation([region]))


class _Trials:
    """Runs a function with some of its regions."""

    def __init__(self, called: Called, terms: Terms) -> None:
        self._called, self._terms = called, terms
        self._word = comparing.word_of(called.name)
        function, _, given = called
        original, self._wanted = comparing.without_regions(function, self._word, given)
        self._known = Known(original.function.get_concrete_function(*given))
        worker.start_for_regions()
        _, partition, _ = comparing.formed(
            function, self._word, given, terms.deny, terms.end(), known=self._known
        )
        self.regions = partition.regions

    def deviation(self, regions: Sequence[Region]) -> Deviation:
        """How far results move with these."""
        function, _, given = self._called
        name = comparing.mark(self._terms.deny) + self._word
        with _only(regions):
            trial = traced(function, name, known=self._known)
            comparing.settled(trial, given, self._terms.end())
            found = results.flat(trial(*given))
        return results.deviation(found, self._wanted, self._terms.rtol)


@contextmanager
def _only(regions: Sequence[Region]) -> Iterator[None]:
    """Has what is traced meanwhile form these regions, and no others."""
    names = [region.name for region in regions]
    native.call("composite_only_regions", record(limited=True, names=names))
    try:
        yield
    finally:
        native.call("composite_only_regions", record(limited=False))
