"""`composite.replay`: regions that were dumped with their inputs, run again by themselves.

Where the dumps come from: composite/runtime/run/region_dump.cc. A dump is protos, and what is run
of it are the ops that regions have, none of which keeps state.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary
from tensorflow.core.framework.graph_pb2 import GraphDef

from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.binding.log import logger
from composite.binding.printed import Printed
from composite.binding.records import CONSTANTS
from composite.compiler.tvm import NotCovered
from composite.compiler.tvm.ir.constants import Packed
from composite.compiler_process.client import UNMADE
from composite.kernels import memory, produce, targets, verdicts, verify
from composite.kernels.expansions import expand
from composite.kernels.host import Refused
from composite.ops import call, function_op, functions
from composite.reference import floats
from composite.reference.adversarial import Draw
from composite.reference.source import Source

if TYPE_CHECKING:
    from rich.console import Console

_INPUTS = "_composite_inputs"  # as region_dump.h has it

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Replayed:
    """One region with the inputs of one call.

    Attributes:
        file: the dump.
        region: the name of the region's function.
        ops: how many nodes of each op it has.
        inputs: the dtypes and shapes of its inputs, as text.
        wrong: how the kernel's outputs, of the dumped inputs or of those of its check, differ from
            the ops' in float64 by more than rounding does; "" if they do not, or there is none.
        refusal: why there is no kernel; "" if there is one.
        error: the kernel's largest error, as a part of the largest absolute value of a row.
        strategy: how the kernel was made.
        proof: what is proven of its accesses.
        failure: what was raised while the region was run or its kernel checked; "" if nothing was.
        kernel_us: microseconds of a node with the kernel, 0 if it was not timed.
        expansion_us: the same with TensorFlow's ops.
    """

    file: str
    region: str
    ops: Counter[str]
    inputs: str
    wrong: str = ""
    refusal: str = ""
    failure: str = ""
    error: float = 0.0
    strategy: str = ""
    proof: str = ""
    kernel_us: float = 0.0
    expansion_us: float = 0.0

    @property
    def is_right(self) -> bool:
        """Whether no output is wrong, as far as there is a kernel, and nothing failed."""
        return not self.wrong and not self.failure

    def lines(self) -> list[str]:
        """What is to be said of it."""
        ops = ", ".join(f"{n} {op}" if n > 1 else op for op, n in self.ops.most_common())
        told = [f"region {self.region[-8:]} ({self.file}): {ops}", f"  inputs: {self.inputs}"]
        if self.failure:
            return [*told, f"  it could not be checked: {self.failure}"]
        if self.refusal:
            return [*told, f"  no kernel: {self.refusal}"]
        told.append(f"  the kernel is wrong: {self.wrong}" if self.wrong else self._accuracy())
        if self.strategy:
            told.append(f"  {self.strategy}; {self.proof}")
        if self.kernel_us:
            told.append(f"  kernel {self.kernel_us:.3g} us, expansion {self.expansion_us:.3g} us")
        return told

    def _accuracy(self) -> str:
        return f"  the kernel is right: within {self.error:.2g} of |y| of the ops in float64"


@dataclass(frozen=True)
class ReplayReport(Printed):
    """What became of the regions of a folder, one after the other.

    Attributes:
        replayed: each region, with its inputs.
    """

    replayed: tuple[Replayed, ...]

    @property
    def is_right(self) -> bool:
        """Whether no kernel is wrong, and all regions could be run."""
        return all(one.is_right for one in self.replayed)

    def print_to(self, console: Console) -> None:
        """Prints what was found."""
        for one in self.replayed:
            for line in one.lines():
                console.print(line, highlight=False, markup=False, soft_wrap=True)


def replay(path: str | os.PathLike[str], *, timed: bool = True) -> ReplayReport:
    """Runs regions that a process with COMPOSITE_REGIONS_DUMP=folder wrote, with their inputs.

    Of each, a kernel is compiled anew, without the cache, and checked as any kernel is. Then it is
    run on the dumped inputs, and compared with the region's ops in float64.

    Args:
        path: the folder, or one file of it.
        timed: whether nodes of the kernel and of TensorFlow's ops are timed.

    Returns:
        A ReplayReport; `print` it.

    Raises:
        FileNotFoundError: if there is no dump.
        ValueError: for a file that is none.
    """
    folder = Path(path)
    files = sorted(folder.glob("*.pb")) if folder.is_dir() else [folder]
    if not files or not files[0].exists():
        raise FileNotFoundError(
            f"no region was dumped in {folder}: a process writes those that it calls with "
            f"COMPOSITE_REGIONS=1 and COMPOSITE_REGIONS_DUMP={folder}"
        )
    with call.eager_mode():
        return ReplayReport(tuple(_replayed(file, timed=timed) for file in files))


@dataclass(frozen=True)
class _Dump:
    """What a file has: a call of a region, and its inputs."""

    request: KernelRequest
    library: Any
    inputs: list[Array]


def _read(file: Path) -> _Dump:
    """A dump. Its region's function is defined from then on."""
    try:
        graph = GraphDef.FromString(file.read_bytes())
        (node,) = graph.node
        name = node.attr["f"].func.name
        known = {function.signature.name: function for function in graph.library.function}
        order = functions.reachable(name, known)
        inputs = [tf.make_ndarray(value) for value in node.attr[_INPUTS].list.tensor]
        library = function_op.define(FunctionDefLibrary(function=[known[one] for one in order]))
    except (DecodeError, KeyError, ValueError, TypeError, tf.errors.InvalidArgumentError) as error:
        raise ValueError(f"{file} is no region that was dumped: {error}") from error
    attrs = {key: value for key, value in node.attr.items() if not key.startswith("_")}
    request = KernelRequest(
        op=function_op.NAME,
        attrs=attrs,
        program=name,
        in_shapes=tuple(tuple(x.shape) for x in inputs),
        constants=tuple(node.attr[CONSTANTS].list.i) if CONSTANTS in node.attr else (),
    )
    return _Dump(request, library, inputs)


def _replayed(file: Path, *, timed: bool) -> Replayed:
    dump = _read(file)
    ops = Counter(node.op for node in dump.library.function[0].node_def)
    inputs = ", ".join(f"{x.dtype.name}{list(x.shape)}" for x in dump.inputs)
    found = Replayed(file.name, dump.request.program, ops, inputs)
    try:
        return _judged(found, dump, timed=timed)
    except Exception as error:  # noqa: BLE001 - the report tells it, and others come after it
        logger.debug("%s: where", file, exc_info=True)
        told = " ".join(f"{type(error).__name__}: {error}".split())
        return replace(found, failure=told)


def _judged(found: Replayed, dump: _Dump, *, timed: bool) -> Replayed:
    """What becomes of a region: its kernel, made and checked, and the dumped inputs."""
    try:
        target = targets.target_of(dump.request)
        request = _at_sizes(produce.sized(dump.request, target), dump.inputs)
        made, library = produce.compile_kernel(request, target)
    except (NotCovered, *UNMADE) as answer:
        return replace(found, refusal=str(answer))
    except verify.Mismatch as error:
        return replace(found, wrong=f"it failed its check: {error}")
    found = replace(found, strategy=made.strategy, proof=made.proof)
    with memory.file(library) as path:
        try:
            found = replace(found, error=_error(dump, request, made, path))
        except verify.Mismatch as error:
            return replace(found, wrong=str(error))
        except Refused as answer:
            return replace(found, refusal=f"it leaves these inputs to TensorFlow's ops: {answer}")
        if not timed:
            return found
        times = verdicts.measured_library(made, request, path).times
    return replace(found, kernel_us=times.kernel_us, expansion_us=times.expansion_us)


def _at_sizes(request: KernelRequest, inputs: Sequence[Array]) -> KernelRequest:
    """The request with the dumped values in place of those inputs that are sizes."""
    sizes = request.size_inputs
    dims = [
        (int(x),) if i in sizes else s
        for i, (x, s) in enumerate(zip(inputs, request.in_shapes, strict=True))
    ]
    return replace(request, in_shapes=tuple(dims))


def _error(dump: _Dump, request: KernelRequest, made: KernelRecord, library: Path) -> float:
    """The kernel's largest error on the dumped inputs. Mismatch if it is more than allowed."""
    expected, references = Source(expand(request, request.in_shapes)).run(dump.inputs)
    sizes = {i: int(dump.inputs[i]) for i in request.size_inputs}
    given = [np.zeros(sizes[i], x.dtype) if i in sizes else x for i, x in enumerate(dump.inputs)]
    packed = [
        Packed(source, elements, dtype.name)
        for source, elements, dtype in zip(
            made.packed_sources, made.packed_elements, made.packed_dtypes, strict=True
        )
    ]
    found = verify.run_kernel(library, made.name, given, expected, packed=packed)
    special = any(floats.is_floating(x) and not np.isfinite(x).all() for x in dump.inputs)
    draw = Draw("as dumped", dump.inputs, special=special, denormal=True)
    outputs = zip(found, expected, references, strict=True)
    return max(verify.distance(f"output {i}", *one, draw) for i, one in enumerate(outputs))
