"""The fields of the records that Python and the runtime exchange, one table for each record.

A record is a NodeDef: `op`, `name`, the op's own attributes, and fields, whose names begin with an
underscore. Both sides read these tables: `typed_record` parses and writes records by them, and the
build of the runtime makes a C++ header of them (generate_record_tables.py).

This module imports the standard library only, because that script runs without TensorFlow.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

VERSION = 1  # of the records; one without a `_version` has version 1


class Kind(Enum):
    """The type of a field: the kind of its AttrValue, as an OpDef would write it."""

    TEXT = "s"
    BYTES = "s of bytes"
    FLAG = "b"
    SIZE = "i"
    NUMBER = "f"  # 32 bits
    TEXTS = "list(s)"
    FLAGS = "list(b)"
    SIZES = "list(i)"
    NUMBERS = "list(f)"
    DTYPES = "list(type)"
    TENSORS = "list(tensor)"
    SHAPES = "list(shape)"
    SHAPE_CLASS = "list(shape) of symbols"  # a dim below 0 is symbol -(dim + 1)

    @property
    def wire(self) -> str:
        """The kind of the AttrValue."""
        return self.value.partition(" ")[0]


class Presence(Enum):
    """Whether a field may be missing."""

    REQUIRED = "required"
    WRITTEN = "written"  # may be missing, which means its default; this version always writes it
    OPTIONAL = "optional"  # is missing where it has its default


class Field(NamedTuple):
    """One field: its name on the wire, its name as an attribute in Python, and its type."""

    wire: str
    name: str
    kind: Kind
    presence: Presence = Presence.OPTIONAL


_REQUIRED, _WRITTEN = Presence.REQUIRED, Presence.WRITTEN
_VERSION = Field("_version", "version", Kind.SIZE)

# What composite_expand and composite_explain take: a call of an op. From `constant_inputs` on: what
# the runtime stamps on nodes, so that a node of a graph can be explained.
CALL = (
    Field("_composite_program", "program", Kind.TEXT),
    Field("_in_shapes", "in_shapes", Kind.SHAPES, _WRITTEN),
    Field("_constants", "constants", Kind.TENSORS),
    Field("_composite_backend", "backend", Kind.TEXT),
    Field("_composite_numerics", "numerics", Kind.TEXT),
    Field("_composite_whole", "whole", Kind.TEXTS),
    Field("_composite_inlined", "inlined", Kind.FLAG),
    Field("_composite_constants", "constant_inputs", Kind.SIZES),
    Field("_composite_variables", "variable_inputs", Kind.SIZES),
    Field("_composite_uncounted", "uncounted", Kind.FLAG),
    Field("_device", "device", Kind.TEXT),
    _VERSION,
)

# What composite_next_request answers: a kernel that a call asks for.
KERNEL_REQUEST = (
    Field("_composite_program", "program", Kind.TEXT, _REQUIRED),
    Field("_in_shapes", "in_shapes", Kind.SHAPE_CLASS, _REQUIRED),
    Field("_size_inputs", "size_inputs", Kind.SIZES),
    Field("_composite_constants", "constants", Kind.SIZES),
    Field("_hint", "hint", Kind.SIZES, _WRITTEN),
    Field("_must", "must", Kind.FLAG, _WRITTEN),
    Field("_device", "device", Kind.TEXT),
    Field("_invariant", "invariant", Kind.FLAG),
    # A built library's kernel that is to be checked in place of making one: its record and its
    # machine code.
    Field("_unchecked", "unchecked", Kind.BYTES),
    Field("_image", "image", Kind.BYTES),
    _VERSION,
)

# What composite_install takes, and what a built library carries for each of its kernels.
KERNEL_RECORD = (
    Field("_composite_program", "program", Kind.TEXT, _REQUIRED),
    Field("_in_shapes", "in_shapes", Kind.SHAPE_CLASS, _REQUIRED),
    Field("_size_inputs", "size_inputs", Kind.SIZES),
    Field("_out_shapes", "out_shapes", Kind.TEXTS, _REQUIRED),
    Field("_composite_constants", "constants", Kind.SIZES),
    Field("_minimums", "minimums", Kind.SIZES, _WRITTEN),
    Field("_divisors", "divisors", Kind.SIZES, _WRITTEN),
    Field("_packed_sources", "packed_sources", Kind.SIZES),
    Field("_packed_elements", "packed_elements", Kind.SIZES),
    Field("_packed_dtypes", "packed_dtypes", Kind.DTYPES),
    Field("_forward_inputs", "forward_inputs", Kind.SIZES),
    Field("_forward_outputs", "forward_outputs", Kind.SIZES),
    Field("_barriers", "barriers", Kind.FLAG, _WRITTEN),
    Field("_isa", "isa", Kind.TEXT, _WRITTEN),
    Field("_target", "target", Kind.TEXT, _WRITTEN),
    Field("_device", "device", Kind.TEXT, _WRITTEN),
    Field("_invariant", "invariant", Kind.FLAG),
    Field("_strategy", "strategy", Kind.TEXT, _WRITTEN),
    Field("_proof", "proof", Kind.TEXT),
    Field("_algebra", "algebra", Kind.TEXT),
    Field("_toolchain", "toolchain", Kind.TEXT),
    # Of a kernel for a GPU, the plan of its launches: the first six have one element a launch.
    Field("_launch_functions", "launch_functions", Kind.TEXTS),
    Field("_launch_work", "launch_work", Kind.TEXTS),
    Field("_launch_share", "launch_share", Kind.SIZES),
    Field("_launch_threads", "launch_threads", Kind.SIZES),
    Field("_launch_shared", "launch_shared", Kind.SIZES),
    Field("_launch_arguments", "launch_arguments", Kind.TEXTS),
    # Also one a launch, where a kernel's author states them.
    Field("_launch_grid", "launch_grid", Kind.TEXTS),
    Field("_launch_block", "launch_block", Kind.TEXTS),
    Field("_launch_dynamic", "launch_dynamic", Kind.SIZES),
    # Also one a launch, where one has blocks that wait for each other.
    Field("_launch_resident", "launch_resident", Kind.FLAGS),
    Field("_workspaces", "workspaces", Kind.TEXTS),
    Field("_aligned", "aligned", Kind.TEXTS),
    Field("_alignment", "alignment", Kind.SIZE),
    Field("_library", "library", Kind.TEXT),
    Field("_library_sha256", "library_sha256", Kind.TEXT),
    Field("_error", "error", Kind.NUMBER),
    Field("_error_unit", "error_unit", Kind.TEXT),
    Field("_exact", "exact", Kind.FLAG),
    Field("_max_error", "max_error", Kind.TEXT),  # a text, in records older than _error
    Field("_verdict", "verdict", Kind.TEXT, _WRITTEN),
    Field("_kernel_us", "kernel_us", Kind.NUMBER),
    Field("_expansion_us", "expansion_us", Kind.NUMBER),
    Field("_sizes", "sizes", Kind.SIZES),
    Field("_kernel_times", "kernel_times", Kind.NUMBERS),
    Field("_expansion_times", "expansion_times", Kind.NUMBERS),
    Field("_kernel_wins", "kernel_wins", Kind.FLAGS),
    _VERSION,
)

RECORDS = {"call": CALL, "kernel request": KERNEL_REQUEST, "kernel record": KERNEL_RECORD}
