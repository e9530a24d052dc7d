"""Kernels that do nothing but reach a limit of the machine, written as the project writes its own.

What is counted:

- `multiply_add`: each vector lane of each fused multiply-add as two operations. Twelve accumulators
  a thread hide the latency of two units; nothing is loaded in the loop.
- `read`: each byte that is loaded, once each time. The loop adds what it reads to eight vectors.
- `copy`: each byte loaded and each byte stored. What a store makes the memory read first is not
  counted, so that out of the caches the figure is below the traffic of the bus.

Each thread has a part of its own, and repeats its loop within the kernel until a launch is no
matter. Measuring: `python -m benchmarks.roofline`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tvm
from tvm import tirx

from composite.compiler import tvm as backend
from composite.compiler.tvm.machine_code import generate
from composite.compiler.tvm.proof import prove
from composite.compiler.tvm.target import Target
from composite.compiler.tvm.tir.block import Block, const, index

_ACCUMULATORS = 12
_READERS = 8

Probe = Callable[..., Any]


def multiply_add(target: Target, threads: int, repeats: int) -> Probe:
    """A kernel of one argument [operands(target, threads)], which repeats acc = acc * f + f.

    The first value of a thread's part is its f, and the accumulators are left there. Its operations
    are `repeats` times twice the length of its argument.
    """
    block, vector = Block(), f"float32x{target.lanes}"
    out = _buffer("out", operands(target, threads))
    with block.loop(threads, "task", parallel=True) as task:
        first = task * (_ACCUMULATORS * target.lanes)
        accumulators = block.registers(_ACCUMULATORS, vector)
        for i in range(_ACCUMULATORS):
            block.store(accumulators, i, const(1 + i / 64, vector))
        factor = block.let(tirx.Broadcast(block.load(out, first), target.lanes))
        with block.loop(repeats, "repeat"):
            for i in range(_ACCUMULATORS):
                block.store(accumulators, i, block.load(accumulators, i) * factor + factor)
        for i in range(_ACCUMULATORS):
            block.store(out, first + i * target.lanes, block.load(accumulators, i))
    return _loaded([out], block, target)


def operands(target: Target, threads: int) -> int:
    """How many floats `multiply_add` works on."""
    return threads * _ACCUMULATORS * target.lanes


def read(target: Target, threads: int, floats: int, repeats: int) -> Probe:
    """A kernel of (source [floats], sums [threads * 8 vectors]); reads its source so many times."""
    block, lanes = Block(), target.lanes
    source = _buffer("source", floats)
    out = _buffer("out", sums(target, threads))
    part, step = _part(floats, threads, lanes)
    with block.loop(threads, "task", parallel=True) as task:
        totals = block.registers(_READERS, f"float32x{lanes}")
        for i in range(_READERS):
            block.store(totals, i, const(0.0, f"float32x{lanes}"))
        with block.loop(repeats, "repeat"), block.loop(part // step, "block") as number:
            for i in range(_READERS):
                at = task * part + number * step + i * lanes
                block.store(totals, i, block.load(totals, i) + block.load(source, at, lanes))
        for i in range(_READERS):
            block.store(out, (task * _READERS + i) * lanes, block.load(totals, i))
    return _loaded([source, out], block, target)


def sums(target: Target, threads: int) -> int:
    """How many floats `read` leaves its sums in."""
    return threads * _READERS * target.lanes


def copy(target: Target, threads: int, floats: int, repeats: int) -> Probe:
    """A kernel of (source [floats], out [floats]); copies so many times."""
    block, lanes = Block(), target.lanes
    source, out = _buffer("source", floats), _buffer("out", floats)
    part, step = _part(floats, threads, lanes)
    with (
        block.loop(threads, "task", parallel=True) as task,
        block.loop(repeats, "repeat"),
        block.loop(part // step, "block") as number,
    ):
        for i in range(_READERS):
            at = task * part + number * step + i * lanes
            block.store(out, at, block.load(source, at, lanes))
    return _loaded([source, out], block, target)


def whole(target: Target, threads: int, floats: int) -> int:
    """The length nearest below `floats` that `read` and `copy` divide into equal parts."""
    step = threads * _READERS * target.lanes
    return max(1, floats // step) * step


def _part(floats: int, threads: int, lanes: int) -> tuple[int, int]:
    """Floats of one thread, and of one turn of its loop."""
    part, step = floats // threads, _READERS * lanes
    if part * threads != floats or part % step:
        raise ValueError(f"{floats} floats are no whole number of turns for {threads} threads")
    return part, step


def _buffer(name: str, floats: int) -> Any:
    return tirx.decl_buffer((index(floats),), "float32", name, data_alignment=4)


def _loaded(parameters: list[Any], block: Block, target: Target) -> Probe:
    function = tirx.PrimFunc(parameters, block.finish())
    functions = {"probe": function.with_attr({"global_symbol": "probe", "tirx.noalias": True})}
    with tempfile.TemporaryDirectory(prefix="composite-bench-") as folder:
        object_file, library = Path(folder) / "probe.o", Path(folder) / "probe.so"
        generate(functions, target).write_to_file(str(object_file), "o")
        objects = {object_file.name: object_file.read_bytes()}
        kernel = backend.Kernel("probe", objects, [], [], [], "probe", target, prove(functions, {}))
        backend.link(kernel, library, runtime=None)
        probe: Probe = tvm.runtime.load_module(str(library))["probe"]
        return probe
