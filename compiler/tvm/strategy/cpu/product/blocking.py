"""How the work of a tiled product is cut: into tasks, and within a task into what caches hold.

There are two ways, and tuning may choose between them (:mod:`..choices`) and change their numbers:

* narrow and deep: a task packs all of k for a few panels, and computes one block of rows after the
  other.
* wide and shallow: a task packs at most 256 steps of k of at most 256 columns, in long contiguous
  reads, and adds up over k in a buffer of at most 256 rows. The default for a vector side that lies
  as ``[K, count]`` if k is short or known only to the call, or if packing is most of the work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from composite.compiler.tvm.ir.dims import Dim, ceildiv, product
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.strategy.context import Context
from composite.compiler.tvm.strategy.cpu.product.tile import PIECE, Tile
from composite.compiler.tvm.tir.block import ceil_quotient, maximum, minimum, quotient

GUESS = 64
"""The size assumed for a dimension that only the call knows, where a choice must be made."""

BLOCK_ROWS = 48
"""Rows of the result whose sums are computed before their epilogue: the L1 cache holds them."""

_WIDE = 256
"""Steps of k, and columns, of a task that adds up."""

_WIDEST = 512
"""Columns of a task at most: beside their panels, the cache holds the sums of a block of rows."""

_DEPTH_PER_ROW = 32
"""With more steps of k than this for each row, packing takes as long as multiplying, about."""

_TASKS_PER_CORE = 4
"""A thread that comes late then still finds work, and none waits long for the last task."""

_ROWS_PER_PACKING = 128
"""Rows for which packing a factor takes a few percent of the time."""


def guess(dim: Dim) -> int:
    """Return the size, or ``GUESS`` if only the call knows it."""
    return dim if isinstance(dim, int) else GUESS


@dataclass(frozen=True)
class Blocking:
    """The cut of one product.

    Attributes:
        group: Vectors that a task packs, whole panels.
        rows: Rows of a task.
        fixed_rows: The rows of every task, if they are known and the same for all.
        depth: Steps of k that are packed at a time.
        k_blocks: How many such pieces there are.
        block_rows: Rows whose sums are computed before their epilogue, unless sums are carried.
    """

    group: int
    rows: Expr | int
    fixed_rows: int | None
    depth: Expr | int
    k_blocks: Expr | int
    block_rows: int = BLOCK_ROWS

    @property
    def adds_up(self) -> bool:
        """Whether sums are carried from one piece of k to the next."""
        return self.k_blocks != 1


@dataclass(frozen=True)
class Sizes:
    """Sizes of a product, as known and as the kernel's expressions.

    With ``long_rows``, a task takes as many columns as the cache holds panels of: its epilogue then
    reads and writes long rows, which the hardware fetches ahead, and no other thread the same.
    """

    batch: int
    vectors: int
    rows: int
    depth: int
    rows_expr: Expr | int
    depth_expr: Expr | int
    long_rows: bool = False

    @classmethod
    def of(
        cls,
        batch: tuple[Dim, ...],
        columns: Dim,
        lanes: int,
        rows: tuple[Dim, Expr | int],
        depth: tuple[Dim, Expr | int],
    ) -> Sizes:
        """Return the sizes; unknown ones are guessed where a number is needed."""
        return cls(
            guess(product(batch)),
            ceildiv(guess(columns), lanes),
            guess(rows[0]),
            guess(depth[0]),
            rows[1],
            depth[1],
        )


def choose_blocking(  # noqa: PLR0913 - all that a cut depends on
    sizes: Sizes,
    tile: Tile,
    lanes: int,
    context: Context,
    *,
    k_first: bool,
    packed: bool,
    by_rows: bool,
) -> Blocking:
    """Return the cut.

    Args:
        sizes: Of the product.
        tile: The register tile.
        lanes: Elements in a vector.
        context: The kernel.
        k_first: Whether the vector side lies as ``[K, count]``.
        packed: Whether it is packed before the tasks.
        by_rows: Whether the epilogue goes over rows of the result, as far as a task has them.
    """
    own = replace(sizes, long_rows=by_rows and _share_rows(sizes, context))
    if not k_first:
        return _deep(own, tile, lanes, context, packed=packed)
    known = isinstance(sizes.depth_expr, int)
    packs_most = not packed and sizes.depth > _DEPTH_PER_ROW * sizes.rows
    default = "wide" if not known or sizes.depth <= _WIDE or packs_most else "deep"
    # Panels of all of k need a size that is known; so does what is packed once.
    cut = context.choose("gemm.cut", ("wide", "deep"), default) if known else default
    if cut == "wide":
        return _wide(own, tile, lanes, context, packed=packed)
    return _deep(own, tile, lanes, context, packed=packed)


def _wide(sizes: Sizes, tile: Tile, lanes: int, context: Context, *, packed: bool) -> Blocking:
    cores = context.target.cores
    rows_of_task = context.choose("gemm.wide.rows", (48, 96, 128, _WIDE, 512), _WIDE)
    chunks = ceildiv(sizes.rows, rows_of_task)
    wanted = ceildiv(2 * cores, chunks * sizes.batch)
    step = PIECE
    if not context.target.invariant:
        step = context.choose("gemm.wide.depth", (64, 128, _WIDE, 512), _WIDE)
    columns = _WIDE
    if sizes.long_rows:
        held = context.machine.held // (4 * max(1, min(step, sizes.depth)))
        columns = max(_WIDE, min(_WIDEST, held))
    most = max(tile.vectors, columns // (lanes * tile.vectors) * tile.vectors)
    pieces = max(wanted, ceildiv(sizes.vectors, most))
    group = _whole(ceildiv(sizes.vectors, pieces), tile.vectors)
    panels = _shares(context, sizes, tile, most // tile.vectors) or group // tile.vectors
    group = tile.vectors * _panels(context, sizes, tile, panels)
    others = sizes.batch * ceildiv(sizes.vectors, group)
    if chunks * others < cores:
        least = tile.rows if packed else BLOCK_ROWS
        rows_of_task = max(least, ceildiv(sizes.rows, ceildiv(cores, chunks * others)))
    elif packed:  # more tasks pack no more
        rows_of_task = _even_rows(sizes.rows, chunks, others, cores)
    depth, k_blocks = _split_depth(sizes.depth_expr, step, invariant=context.target.invariant)
    rows, fixed = _split_rows(sizes.rows_expr, rows_of_task)
    return Blocking(group, rows, fixed, depth, k_blocks)


def _deep(sizes: Sizes, tile: Tile, lanes: int, context: Context, *, packed: bool) -> Blocking:
    target = context.target
    panel_bytes = max(1, sizes.depth) * tile.vectors * lanes * 4
    held = max(1, context.machine.held // panel_bytes)
    panels = min(4, held)
    have = ceildiv(sizes.vectors, tile.vectors)
    spread = ceildiv(2 * target.cores, sizes.batch)
    if sizes.long_rows:
        widest = max(1, _WIDEST // (tile.vectors * lanes))
        panels = ceildiv(have, ceildiv(have, min(held, widest)))
    elif have >= spread:
        panels = _even_panels(have, min(panels, ceildiv(have, spread)), target.cores)
    panels = _shares(context, sizes, tile, panels) or min(panels, have)
    panels = _panels(context, sizes, tile, panels)
    tasks = sizes.batch * ceildiv(have, panels)
    block_rows = context.choose("gemm.deep.rows", (24, BLOCK_ROWS, 96, 192), BLOCK_ROWS)
    # A chunk packs for itself, so it must have rows enough to be worth that.
    most = max(1, sizes.rows // (2 * block_rows))
    chunks = min(most, ceildiv(_TASKS_PER_CORE * target.cores, tasks))
    if packed and tasks * chunks < target.cores:  # more tasks pack no more
        chunks = min(ceildiv(target.cores, tasks), ceildiv(sizes.rows, tile.rows))
    elif packed:
        least = 2 * tile.rows
        chunks = ceildiv(sizes.rows, _even_rows(sizes.rows, chunks, tasks, target.cores, least))
    chunks = context.choose("gemm.deep.chunks", _powers(most), chunks)
    rows_of_task = maximum(1, quotient(sizes.rows_expr + (chunks - 1), chunks))
    rows, fixed = _split_rows(sizes.rows_expr, rows_of_task)
    return Blocking(panels * tile.vectors, rows, fixed, sizes.depth_expr, 1, block_rows)


def _share_rows(sizes: Sizes, context: Context) -> bool:
    """Return whether threads can share rows alone: there are enough, even if each task packs."""
    chunks = ceildiv(_TASKS_PER_CORE * context.target.cores, sizes.batch)
    return context.trips is None and sizes.rows >= _ROWS_PER_PACKING * chunks


def _even_rows(rows: int, chunks: int, others: int, cores: int, least: int = BLOCK_ROWS) -> int:
    """Return the rows of a task such that no thread has many more of them than another.

    There are ``chunks`` or up to twice as many of them, each for so many ``others``; more than
    ``chunks`` only if they have ``least`` rows.
    """
    if chunks * others > 2 * _TASKS_PER_CORE * cores:  # they are even enough
        return ceildiv(rows, chunks)
    most = max(chunks, min(2 * chunks, rows // least))

    def largest_share(chunks: int) -> int:
        return ceildiv(chunks * others, cores) * ceildiv(rows, chunks)

    return ceildiv(rows, min(range(chunks, most + 1), key=largest_share))


def _shares(context: Context, sizes: Sizes, tile: Tile, most: int) -> int:
    """Return how many panels a task takes so that a team has equal shares; 0 without a team.

    The threads of a team take no tasks of each other: all wait for the one with the largest share.
    """
    if context.trips is None or not context.trips.team:
        return 0
    return _even_panels(ceildiv(sizes.vectors, tile.vectors), most, context.target.cores)


def _even_panels(have: int, most: int, cores: int) -> int:
    """Return how many panels a task takes so that no thread has many more than another."""

    def largest_share(panels: int) -> int:
        return ceildiv(ceildiv(have, panels), cores) * panels

    return min(range(1, max(1, most) + 1), key=lambda panels: (largest_share(panels), -panels))


def _panels(context: Context, sizes: Sizes, tile: Tile, default: int) -> int:
    """Return how many panels a task takes."""
    have = ceildiv(sizes.vectors, tile.vectors)
    return context.choose("gemm.panels", [p for p in _powers(have) if p <= 16], default)


def _powers(most: int) -> list[int]:
    """Return 1, 2, 4, ... up to ``most``."""
    return [1 << i for i in range(most.bit_length()) if 1 << i <= most]


def equal_blocks(rows: int, most: int) -> int:
    """Return the fewest equal blocks of up to twice ``most`` rows; 0 if they would be small."""
    for blocks in range(ceildiv(rows, 2 * most - 1), ceildiv(rows, most // 2) + 1):
        if rows % blocks == 0:
            return blocks
    return 0


def _whole(count: int, step: int) -> int:
    return ceildiv(count, step) * step


def _split_depth(depth: Expr | int, most: int, *, invariant: bool) -> tuple[Expr | int, Expr | int]:
    """Return (steps at a time, pieces), the pieces as equal as can be, unless it is invariant."""
    if not isinstance(depth, int):
        return most, ceil_quotient(depth, most)
    pieces = ceildiv(depth, most)
    if pieces <= 1:
        return depth, 1
    return (most if invariant else _whole(ceildiv(depth, pieces), 4)), pieces


def _split_rows(rows: Expr | int, most: Expr | int) -> tuple[Expr | int, int | None]:
    """Return rows of a task (equal shares), and their number if all tasks have it."""
    pieces = maximum(1, quotient(rows + (most - 1), most))
    share = maximum(1, quotient(rows + (pieces - 1), pieces))
    if isinstance(rows, int) and isinstance(share, int):
        return share, share if rows % share == 0 else None
    return minimum(share, maximum(1, rows)), None
