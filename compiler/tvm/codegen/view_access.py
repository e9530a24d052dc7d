"""Elements of views (:mod:`.views`), at indices that are computed from the reader's.

A vector of a concatenation lies within one part nearly always: then it is that part's vector, else
its lanes are computed one by one. So nothing is read outside of a part, whatever the parts are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Protocol

from tvm import ir, tirx
from tvm.tirx import stmt as tir_stmt

from composite.compiler.tvm.codegen.indices import (
    Index,
    Lane,
    as_expr,
    flat_index,
    lane_of,
    lanes_at,
)
from composite.compiler.tvm.ir.dims import Dim, product
from composite.compiler.tvm.ir.dtypes import compute_dtype
from composite.compiler.tvm.ir.tensor import Expr, Tensor
from composite.compiler.tvm.ir.views import (
    Check,
    Concat,
    DynamicSlice,
    Gather,
    Iota,
    RandomWords,
    Slice,
)
from composite.compiler.tvm.math.numeric import (
    convert,
    from_storage,
    storage_dtype,
    to_storage,
)
from composite.compiler.tvm.math.philox import WORDS, random_pairs, random_words
from composite.compiler.tvm.tir.block import (
    Block,
    const,
    index,
    lanes_of,
    quotient,
    remainder,
    spread,
)


class Elements(Protocol):
    """Elements of tensors within one scope of a block: an :class:`.access.Access`."""

    @property
    def block(self) -> Block:
        """The block that is written into."""

    def size(self, dim: Dim) -> Expr | int:
        """Return a size as an index expression, or the int that it is."""

    def inner(self) -> Elements:
        """Return the elements within a scope inside of this one."""

    def read(self, tensor: Tensor, at: Sequence[Index]) -> Expr:
        """Return an element: loaded if it is stored, else computed."""

    def compute(self, tensor: Tensor, at: Sequence[Index]) -> Expr:
        """Return an element that is computed here even if the tensor has a buffer."""


Element = Callable[[Elements], Expr]


def read_view(access: Elements, tensor: Tensor, at: Sequence[Index]) -> Expr | None:
    """Return an element, or a vector, of a view; None if the tensor is something else."""
    node = tensor.node
    if isinstance(node, Slice):
        return access.read(node.operand, _source(access, node, at))
    if isinstance(node, DynamicSlice):
        return access.read(node.operand, _from_starts(access, node, at))
    if isinstance(node, Concat):
        return _concat(access, tensor, node, at)
    if isinstance(node, Gather):
        return _gather(access, tensor, node, at)
    if isinstance(node, Check):
        return _check(access, node, at)
    if isinstance(node, Iota):
        return access.block.let(convert(index(as_expr(at[node.axis])), compute_dtype(tensor.dtype)))
    if isinstance(node, RandomWords):
        return _random_words(access, tensor, node, at)
    return None


def _source(access: Elements, node: Slice, at: Sequence[Index]) -> list[Index]:
    """Return the operand's indices of an element of a slice."""
    block = access.block
    source: list[Index] = []
    for i, start, step in zip(at, node.start, node.step, strict=True):
        first = access.size(start)
        if isinstance(i, Lane):
            source.append(Lane(block.bind(i.base * step + first), i.lanes, i.step * step))
        else:
            moves = not (step == 1 and isinstance(first, int) and first == 0)
            source.append(block.bind(i * step + first) if moves else i)
    return source


def _from_starts(access: Elements, node: DynamicSlice, at: Sequence[Index]) -> list[Index]:
    """Return the operand's indices of an element of a slice whose starts are data."""
    block = access.block
    source = list(at)
    for axis, start in zip(node.axes, node.starts, strict=True):
        first = block.let(convert(access.read(start, []), "int64"), "start")
        i = source[axis]
        if isinstance(i, Lane):
            source[axis] = Lane(block.bind(i.base + first), i.lanes, i.step)
        else:
            source[axis] = block.bind(i + first)
    return source


def _concat(access: Elements, tensor: Tensor, node: Concat, at: Sequence[Index]) -> Expr:
    """Return an element of the part that the index along the axis lies in."""
    place = at[node.axis]
    dtype, lanes = compute_dtype(tensor.dtype), lanes_at(at)
    if not isinstance(place, Lane):
        if lanes_of(index(place)) > 1:
            return _by_lanes(access, tensor, at)
        low = high = place
    else:
        ends = (place.base, place.base + place.step * (place.lanes - 1))
        low, high = ends if place.step > 0 else ends[::-1]
    cases: list[tuple[Expr | bool, Element]] = []
    start: Expr | int = 0
    for number, (part, stop) in enumerate(zip(node.operands, node.ends(), strict=True)):
        end = access.size(stop)
        size = part.shape[node.axis]
        is_last = number == len(node.operands) - 1
        if not (isinstance(place, Lane) and isinstance(size, int) and size < place.reach):
            after = True if number == 0 or low is high else low >= start
            before = True if is_last else high < end
            condition, element = _both(after, before), _element(part, node.axis, at, start)
            if condition is True and not cases:
                return element(access)
            if condition is not False:
                cases.append((condition, element))
        start = end
    if isinstance(place, Lane):
        cases.append((True, lambda inner: _by_lanes(inner, tensor, at)))
    return first_that_holds(access, dtype, lanes, cases)


def _element(part: Tensor, axis: int, at: Sequence[Index], start: Expr | int) -> Element:
    """Return how an element of a part is read, which starts at ``start`` of the whole."""

    def read(access: Elements) -> Expr:
        source = list(at)
        i = at[axis]
        if isinstance(i, Lane):
            source[axis] = Lane(access.block.bind(i.base - start), i.lanes, i.step)
        else:
            source[axis] = access.block.bind(i - start)
        if part.shape[axis] == 1 and not isinstance(i, Lane):
            source[axis] = 0
        return access.read(part, source)

    return read


def _both(a: Expr | bool, b: Expr | bool) -> Expr | bool:
    if isinstance(a, bool):
        return b if a else False
    if isinstance(b, bool):
        return a if b else False
    return tirx.And(a, b)


def first_that_holds(
    access: Elements, dtype: str, lanes: int, cases: Sequence[tuple[Expr | bool, Element]]
) -> Expr:
    """Return the value of the first case whose condition holds; no other is computed."""
    block = access.block
    raw = storage_dtype(dtype)
    cell = block.registers(1, raw if lanes == 1 else f"{raw}x{lanes}", "either")

    def write(rest: Sequence[tuple[Expr | bool, Element]]) -> None:
        (condition, element), *others = rest
        if condition is True or not others:
            value = spread(element(access.inner()), lanes)
            block.store(cell, 0, to_storage(block, value, dtype))
        else:
            with block.when(condition):
                write([(True, element)])
            with block.otherwise():
                write(others)

    write(cases)
    return from_storage(block.let(tirx.BufferLoad(cell, [index(0)])), dtype)


def _by_lanes(access: Elements, tensor: Tensor, at: Sequence[Index]) -> Expr:
    """Return a vector whose lanes are computed one after the other."""
    block, dtype, lanes = access.block, compute_dtype(tensor.dtype), lanes_at(at)
    cells = block.registers(lanes, storage_dtype(dtype), "lanes")
    lane_at = [lane_of(block, i) for i in at]
    with block.loop(lanes, "lane") as lane:
        value = access.inner().compute(tensor, [one(lane) for one in lane_at])
        block.store(cells, lane, to_storage(block, value, dtype))
    return from_storage(block.let(block.load(cells, 0, lanes)), dtype)


def _gather(access: Elements, tensor: Tensor, node: Gather, at: Sequence[Index]) -> Expr:
    own = [at[i] for i in node.at]
    kept = iter(node.kept)
    found = {}
    for axis, indices in zip(node.axes, node.indices, strict=True):
        value = access.read(indices, own)
        found[axis] = access.block.let(convert(value, "int64"), "found")
    source = [found[i] if i in found else at[next(kept)] for i in range(node.table.rank)]
    if not node.zero_elsewhere:
        return access.read(node.table, source)
    if any(lanes_of(value) > 1 for value in found.values()):
        return _by_lanes(access, tensor, at)  # of each lane it is asked whether it is within
    sizes = [index(access.size(node.table.shape[axis])) for axis in node.axes]
    inside = reduce(tirx.And, map(_is_within, found.values(), sizes))
    dtype = compute_dtype(node.table.dtype)
    cases: list[tuple[Expr | bool, Element]] = [
        (inside, lambda inner: inner.read(node.table, source)),
        (True, lambda _: const(0, dtype)),
    ]
    return first_that_holds(access, dtype, lanes_at(at), cases)


def _check(access: Elements, node: Check, at: Sequence[Index]) -> Expr:
    """Return an index after the kernel has failed if it is out of bounds."""
    block = access.block
    value = block.let(access.read(node.operand, at))  # of one expression, so that it is proven
    bound = index(access.size(node.bound))
    lanes = lanes_of(value)
    if lanes == 1:
        _fail_unless_within(block, convert(value, "int64"), bound)
        return value
    cells = block.registers(lanes, "int64", "checked")
    block.store(cells, 0, convert(value, "int64"))
    with block.loop(lanes, "lane") as lane:
        _fail_unless_within(block, tirx.BufferLoad(cells, [lane]), bound)
    return value


def _fail_unless_within(block: Block, value: Expr, bound: Expr) -> None:
    within = _is_within(block.let(value), bound)
    # The kind tells the host that the call, not the kernel, is at fault. TVM 0.27's own order of
    # arguments is (condition, kind), whatever its Python names say.
    message = [ir.StringImm("an index is out of range")]
    block.add(tir_stmt.AssertStmt(within, ir.StringImm("IndexError"), message))


def _is_within(value: Expr, bound: Expr) -> Expr:
    return tirx.And(value >= index(0), value < bound)


def _random_words(access: Elements, tensor: Tensor, node: RandomWords, at: Sequence[Index]) -> Expr:
    """Return words of groups of four: neighbours are made together."""
    block, lanes = access.block, lanes_at(at)
    strides = [access.size(product(tensor.shape[i + 1 :])) for i in range(tensor.rank)]
    place = flat_index(at, strides)
    is_run = isinstance(place, Lane) and isinstance(place.step, int) and place.step == 1
    if lanes > 1 and (not is_run or lanes % WORDS):
        return _by_lanes(access, tensor, at)
    key, low, high = (access.read(t, [0] * t.rank) for t in node.operands)
    first = block.bind(index(place.base if isinstance(place, Lane) else place), "word")
    group = block.bind(index(quotient(first, WORDS)), "group")
    past = block.bind(index(remainder(first, WORDS)), "past")
    groups = max(1, lanes // WORDS)
    make = random_pairs if node.pairs else random_words
    made = block.registers(2 * WORDS * groups, tensor.dtype, "words")
    block.store(made, 0, make(block, key, (low, high), group, groups))
    if lanes > 1:
        # A run that begins within a group ends in one more.
        with block.when(past > index(0)):
            rest = make(block, key, (low, high), block.bind(group + groups), groups)
            block.store(made, lanes, rest)
    return block.let(block.load(made, past, lanes))
