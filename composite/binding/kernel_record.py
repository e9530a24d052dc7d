"""A compiled kernel, as the runtime installs it and as libraries and the cache keep it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import tensorflow as tf

from composite.binding.typed_record import Dims, TypedRecord


@dataclass(frozen=True, kw_only=True)
class KernelRecord(TypedRecord):
    """A kernel; its name is its C symbol without the prefix.

    Attributes:
        program: the digest of the op's version.
        in_shapes: the dims of each input; a text is a symbol.
        size_inputs: the inputs whose value takes the place of the shape, see KernelRequest.
        out_shapes: dims joined by commas, each in postfix over numbers and symbols.
        constants: the inputs that the kernel takes for constant.
        minimums: the least value of each symbol.
        divisors: what divides each symbol's value.
        packed_sources: the constant inputs that packed arguments are made of.
        packed_elements: how many elements each packed argument has.
        packed_dtypes: and of which dtype.
        forward_inputs: inputs in whose memory an output may lie, which `forward_outputs` names.
        forward_outputs: see forward_inputs.
        barriers: some loop of the kernel has one.
        isa: the level of x86-64 that a CPU must have.
        target: what it was compiled for.
        device: "CPU", "xla:cpu" (see KernelRequest), or a level of GPUs such as "cuda:sm_80".
        invariant: a row's bits are the same in any batch.
        strategy: how it was made, for people.
        proof: "proven", or which access was not and why; "" in older records.
        algebra: "equal by algebra", or why it was not compared so; "" if that was forbidden.
        toolchain: what made it, as a hash, where it was made for a cache; "" in older records.
        launch_functions: of a kernel for a GPU, the function of each launch, in their order.
        launch_work: the units of work of each launch, in postfix over numbers and symbols.
        launch_share: how many units a block of each does at once.
        launch_threads: threads of a block.
        launch_shared: bytes of shared memory of a block, which the function declares itself.
        launch_arguments: what each is given: "in0", "out0", "work0", "size0", or a number as
            "int=1", "float=0.5", "double=0.5", with spaces between.
        launch_grid: the blocks of each in up to three dimensions, in postfix with commas between;
            "" or missing: as many as there is work for, or as the GPU runs at a time.
        launch_block: the threads of a block in each dimension, as "16,16"; "" or missing: in one.
        launch_dynamic: bytes of shared memory that a launch gives beside what is declared.
        launch_resident: whether the blocks of a launch wait for each other.
        workspaces: the bytes of each workspace, in postfix.
        aligned: the inputs and outputs whose addresses must be multiples of 16.
        alignment: of a kernel for the CPU, what the addresses of its tensors must be multiples of,
            if that is more than elements need; an input at another is copied.
        library: the path of its library, or of its machine code for a GPU; None: it came with a
            built one.
        library_sha256: the hash of that file.
        error: the largest that the check found, in units of `error_unit`.
        error_unit: for people.
        exact: it has the bits of the expansion for any inputs.
        max_error: the error as a text, in records older than `error`.
        verdict: "kernel", "expansion" or "unmeasured".
        kernel_us: at the size of the call that asked; so `expansion_us`.
        expansion_us: see kernel_us.
        sizes: at which it was measured, ascending; `kernel_times`, `expansion_times` and
            `kernel_wins` have what was found at each.
        kernel_times: see sizes.
        expansion_times: see sizes.
        kernel_wins: see sizes.
    """

    KIND: ClassVar[str] = "kernel record"

    program: str
    in_shapes: tuple[Dims, ...]
    out_shapes: tuple[str, ...]
    size_inputs: tuple[int, ...] = ()
    constants: tuple[int, ...] = ()
    minimums: tuple[int, ...] = ()
    divisors: tuple[int, ...] = ()
    packed_sources: tuple[int, ...] = ()
    packed_elements: tuple[int, ...] = ()
    packed_dtypes: tuple[tf.DType, ...] = ()
    forward_inputs: tuple[int, ...] = ()
    forward_outputs: tuple[int, ...] = ()
    barriers: bool = True
    isa: str = ""
    target: str = ""
    device: str = ""
    invariant: bool = False
    strategy: str = ""
    proof: str = ""
    algebra: str = ""
    toolchain: str = ""
    launch_functions: tuple[str, ...] = ()
    launch_work: tuple[str, ...] = ()
    launch_share: tuple[int, ...] = ()
    launch_threads: tuple[int, ...] = ()
    launch_shared: tuple[int, ...] = ()
    launch_arguments: tuple[str, ...] = ()
    launch_grid: tuple[str, ...] = ()
    launch_block: tuple[str, ...] = ()
    launch_dynamic: tuple[int, ...] = ()
    launch_resident: tuple[bool, ...] = ()
    workspaces: tuple[str, ...] = ()
    aligned: tuple[str, ...] = ()
    alignment: int = 0
    library: str | None = None
    library_sha256: str | None = None
    error: float | None = None
    error_unit: str | None = None
    exact: bool | None = None
    max_error: str | None = None
    verdict: str = "unmeasured"
    kernel_us: float | None = None
    expansion_us: float | None = None
    sizes: tuple[int, ...] = ()
    kernel_times: tuple[float, ...] = ()
    expansion_times: tuple[float, ...] = ()
    kernel_wins: tuple[bool, ...] = ()
