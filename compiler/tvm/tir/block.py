"""Write TIR statements in the order in which they run.

Explicit loops and explicit vectors: a kernel says itself where its registers, lanes and threads
are, instead of asking a scheduler to find them. Thin on purpose; it knows nothing of tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tvm import ir, tirx
from tvm.tirx import stmt as tir_stmt

from composite.compiler.tvm.ir.dims import Dim
from composite.compiler.tvm.ir.tensor import Expr
from composite.compiler.tvm.tir.contraction import Contraction
from composite.compiler.tvm.tir.stand_ins import StandIns

Buffer = Any
Stmt = Any
INDEX = "int64"
_STACK_BYTES = 16 * 1024


def dtype_of(expr: Expr) -> Any:
    """Return the dtype of a TVM expression: a str with ``bits`` and ``lanes``."""
    return expr.ty.dtype


def lanes_of(expr: Expr) -> int:
    """Return the number of lanes of a TVM expression."""
    return int(dtype_of(expr).lanes)


def const(value: int | float | bool, dtype: str) -> Expr:
    """Return a scalar or vector constant."""
    return tirx.const(value, dtype)


def index(value: Expr | int) -> Expr:
    """Return the value as an index expression."""
    return tirx.const(value, INDEX) if isinstance(value, int) else value


def spread(expr: Expr, lanes: int) -> Expr:
    """Return the expression with that many lanes, repeating a scalar."""
    return tirx.Broadcast(expr, lanes) if lanes > 1 and lanes_of(expr) == 1 else expr


def _like_lanes(dtype: str, expr: Expr) -> str:
    return str(type(dtype_of(expr))(dtype).with_lanes(lanes_of(expr)))


def minimum(a: Expr | int, b: Expr | int) -> Expr | int:
    """Return the smaller index."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return tirx.min(index(a), index(b))


def maximum(a: Expr | int, b: Expr | int) -> Expr | int:
    """Return the larger index."""
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return tirx.max(index(a), index(b))


def quotient(a: Expr | int, b: Expr | int) -> Expr | int:
    """Return ``a // b`` of indices, which are not negative."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if isinstance(b, int) and b == 1:
        return a
    return tirx.truncdiv(index(a), spread(index(b), lanes_of(index(a))))


def remainder(a: Expr | int, b: Expr | int) -> Expr | int:
    """Return ``a % b`` of indices, which are not negative."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    if isinstance(b, int) and b == 1:
        return 0
    return tirx.truncmod(index(a), spread(index(b), lanes_of(index(a))))


def ceil_quotient(a: Expr | int, b: int) -> Expr | int:
    """Return how many pieces of ``b`` cover ``a``."""
    return quotient(a + (b - 1), b)


@dataclass
class _OnStack:
    """A workspace on the stack, and the vectors that are stored to it and loaded from it.

    Attributes:
        body: The statements that it was allocated in.
        narrowest: The least lanes of a store; 0 if there is none.
        widest: The most lanes of a load.
    """

    body: list[Stmt]
    allocation: Stmt
    narrowest: int = 0
    widest: int = 0


class Block:
    """Statements under construction, with a stack of open scopes.

    Attributes:
        fuses: Whether the target has fused multiply-adds; arithmetic that relies on them has
            another form without.
        keeps_roundings: Whether :mod:`.contraction` says how products and sums are rounded.
        flushes: Whether bfloat16 is rounded by the target's instruction, which flushes denormals.
        stand_ins: What stands over the ring for floats that are written out.
        checks: How many statements it has that may end the call with an error.
    """

    def __init__(self, stand_ins: StandIns | None = None) -> None:
        self.fuses = False
        self.keeps_roundings = False
        self.flushes = False
        self.stand_ins = stand_ins or StandIns()
        self.checks = 0
        self._contraction = Contraction(self.stand_ins)
        self._scopes: list[list[Stmt]] = [[]]
        self._holds: bool | None = None  # the condition of the last `when`, if it is known
        self._count = 0
        self._cells: dict[int, Expr] = {}  # what let returned, by identity
        self._stored: dict[int, tuple[Expr, str, Expr]] = {}  # by identity of the first
        self._imports: dict[str, None] = {}  # in order
        self._stack: dict[Buffer, _OnStack] = {}

    def add(self, stmt: Stmt) -> None:
        """Append a statement to the innermost scope."""
        self._scopes[-1].append(stmt)
        self.checks += isinstance(stmt, tir_stmt.AssertStmt)

    def import_llvm(self, text: str) -> None:
        """Link a module of LLVM with the kernel, for functions that are called by their names."""
        self._imports[text] = None

    def name(self, hint: str) -> str:
        """Return a name not used before in this block."""
        self._count += 1
        return f"{hint}_{self._count}"

    def let(self, value: Expr, hint: str = "v") -> Expr:
        """Compute data once, here, and return what stands for it.

        It goes through a local array of one element, which LLVM turns into a register. A TIR
        variable would not do: TVM's passes put its value back wherever it is used, which takes
        exponential time and reorders float arithmetic.
        """
        if isinstance(value, int | tirx.Var | tirx.IntImm | tirx.FloatImm):
            return value
        if id(value) in self._cells:
            return value
        if dtype_of(value).is_bool:  # vectors of bits have no memory layout
            byte = self.let(tirx.Cast(_like_lanes("uint8", value), value), hint)
            truth = tirx.NE(byte, tirx.const(0, str(dtype_of(byte))))
            self._cells[id(truth)] = truth
            return truth
        cell = self.registers(1, str(dtype_of(value)), hint)
        self.add(tir_stmt.BufferStore(cell, self._rounded(value), [index(0)]))
        load = tirx.BufferLoad(cell, [index(0)])
        self._cells[id(load)] = load
        return load

    def _rounded(self, value: Expr) -> Expr:
        return self._contraction.of(value) if self.keeps_roundings else value

    def note_stored(self, value: Expr, dtype: str, raw: Expr) -> None:
        """Remember that a store of the value as ``dtype`` leaves ``raw``, of which it was made."""
        self._stored[id(value)] = (value, dtype, raw)

    def stored(self, value: Expr, dtype: str) -> Expr | None:
        """Return what a store of the value as ``dtype`` leaves, if that is known."""
        _, noted, raw = self._stored.get(id(value), (None, None, None))
        return raw if noted == dtype else None

    def bind(self, value: Expr | int, hint: str = "i") -> Expr | int:
        """Compute an index once, here.

        Outside of all loops it becomes a TIR variable, which parallel tasks capture. Inside it goes
        through :meth:`let`: TVM would simplify each index anew, down to all that it is made of.
        """
        if isinstance(value, int | tirx.Var | tirx.IntImm):
            return value
        if len(self._scopes) > 1:
            return self.let(value, hint)
        var = tirx.Var(self.name(hint), dtype_of(value))
        self.add(tir_stmt.Bind(var, value))
        return var

    def load(self, buffer: Buffer, at: Expr | int, lanes: int = 1, step: int = 1) -> Expr:
        """Return ``lanes`` elements of a flat buffer, ``step`` apart."""
        place = tirx.Ramp(index(at), index(step), lanes) if lanes > 1 else index(at)
        if (stacked := self._stack.get(buffer)) is not None:
            stacked.widest = max(stacked.widest, lanes)
        return tirx.BufferLoad(buffer, [place])

    def store(self, buffer: Buffer, at: Expr | int, value: Expr, step: int = 1) -> None:
        """Store a scalar or a vector into a flat buffer."""
        value = self._rounded(value)
        lanes = lanes_of(value)
        if (stacked := self._stack.get(buffer)) is not None:
            width = lanes if step == 1 else 1  # else it is one store a lane
            stacked.narrowest = min(stacked.narrowest or width, width)
        if lanes > 1 and buffer.dtype.lanes == 1:
            self.add(
                tir_stmt.BufferStore(buffer, value, [tirx.Ramp(index(at), index(step), lanes)])
            )
        else:
            self.add(tir_stmt.BufferStore(buffer, value, [index(at)]))

    def prefetch(
        self, buffer: Buffer, at: Expr | int, *, write: bool = False, level: int = 1
    ) -> None:
        """Prefetch the cache line of an element into the cache of a level, to read or write it.

        The element need not exist.
        """
        self.add(self._prefetch(buffer, at, write=write, level=level))

    @staticmethod
    def _prefetch(buffer: Buffer, at: Expr | int, *, write: bool = False, level: int = 1) -> Stmt:
        line = tirx.address_of(tirx.BufferLoad(buffer, [index(at)]))
        locality, data = 4 - level, 1
        how = (tirx.const(value, "int32") for value in (int(write), locality, data))
        return tir_stmt.Evaluate(tirx.call_intrin("void", "tirx.prefetch", line, *how))

    def registers(self, count: int, dtype: str, hint: str = "acc") -> Buffer:
        """Return a local array, each element of a (vector) dtype, that LLVM keeps in registers.

        TVM turns a local buffer of 1 KB or more into a heap workspace unless told not to.
        """
        buffer = tirx.decl_buffer((count,), dtype, self.name(hint), scope="local")
        self.stand_ins.note(buffer)
        keep = {"disable_lower_builtin": tirx.IntImm("bool", 1)}
        self.add(tir_stmt.AllocBuffer(buffer, keep))
        return buffer

    def workspace(self, size: Expr | int, dtype: str, hint: str = "work") -> Buffer:
        """Return a flat buffer that lives until the end of this scope.

        A small one is on the stack, aligned to cache lines; a larger one comes from the host's
        allocator, whose alignment is not relied on.
        """
        width = tirx.const(0, dtype).ty.dtype.itemsize
        small = isinstance(size, int) and size * width <= _STACK_BYTES
        buffer = tirx.decl_buffer(
            (index(size),), dtype, self.name(hint), data_alignment=64 if small else width
        )
        keep = {"disable_lower_builtin": tirx.IntImm("bool", 1)} if small else None
        allocation = tir_stmt.AllocBuffer(buffer, keep)
        self.add(allocation)
        if small and size > 1:
            self._stack[buffer] = _OnStack(self._scopes[-1], allocation)
        return buffer

    def _keep_whole(self, body: list[Stmt]) -> None:
        """Have LLVM leave workspaces of a scope in memory.

        LLVM 22 makes values of their parts (SROA). Where narrow vectors are stored and a wide one
        is loaded, it merges them in front of the store with the highest address, even if another
        store is later: it then crashes, or refuses its own code. A buffer that an intrinsic sees is
        left alone. LLVM may make vectors of any width of scalars.
        """
        for buffer, stacked in list(self._stack.items()):
            if stacked.body is not body:
                continue
            del self._stack[buffer]
            if stacked.narrowest == 1 or stacked.narrowest < stacked.widest:
                place = next(i for i, s in enumerate(body) if s.same_as(stacked.allocation))
                body.insert(place + 1, self._prefetch(buffer, 0))

    def temporary(self, count: Dim, size: Expr | int, dtype: str) -> Buffer:  # noqa: ARG002
        """Return a workspace of ``count`` elements, for what one stage leaves to another.

        ``size`` is the same as an index, and at least 1.
        """
        return self.workspace(size, dtype, "temp")

    @contextmanager
    def loop(
        self, extent: Expr | int, hint: str = "i", *, parallel: bool = False, start: Expr | int = 0
    ) -> Iterator[Expr]:
        """Repeat what is written inside; yields the counter. ``start`` is the first value."""
        count = int(extent) if isinstance(extent, int | tirx.IntImm) else None
        if count == 1 and not parallel:  # LLVM would think that it is repeated very often
            yield index(start)
            return
        var = tirx.Var(self.name(hint), INDEX)
        body = self._open()
        yield var
        self._close(body)
        if count == 0:
            return
        kind = tir_stmt.ForKind.PARALLEL if parallel else tir_stmt.ForKind.SERIAL
        self.add(tir_stmt.For(var, index(start), index(extent), kind, self._sequence(body)))

    @contextmanager
    def when(self, condition: Expr | bool) -> Iterator[None]:
        """Run what is written inside only if the condition holds."""
        body = self._open()
        yield
        self._close(body)
        if condition is True:
            self._scopes[-1].extend(body)
        elif condition is not False:
            self.add(tir_stmt.IfThenElse(condition, self._sequence(body), None))
        self._holds = condition if isinstance(condition, bool) else None

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Run what is written inside if the ``when`` just before did not hold."""
        holds = self._holds
        previous = self._scopes[-1].pop() if holds is None else None
        body = self._open()
        yield
        self._close(body)
        if previous is not None:
            then = previous.then_case
            self.add(tir_stmt.IfThenElse(previous.condition, then, self._sequence(body)))
        elif not holds:
            self._scopes[-1].extend(body)

    @contextmanager
    def flushing(self, flushes: bool) -> Iterator[None]:
        """Round bfloat16 by the instruction in what is written inside."""
        outer, self.flushes = self.flushes, flushes
        yield
        self.flushes = outer

    @contextmanager
    def ahead(self, depth: int) -> Iterator[None]:
        """Write in front of the scope that was opened while ``depth`` scopes were open."""
        inner = self._scopes[depth:]
        del self._scopes[depth:]
        yield
        self._scopes += inner

    @property
    def depth(self) -> int:
        """How many scopes are open."""
        return len(self._scopes)

    @contextmanager
    def team(self) -> Iterator[None]:
        """Have each thread of a team run what is written inside; they share its parallel loops."""
        with self._marked("pragma_parallel_launch_point"):
            yield

    @contextmanager
    def meeting(self) -> Iterator[None]:
        """Put a barrier, at which the threads of the team meet, behind what is written inside."""
        with self._marked("pragma_parallel_barrier_when_finish"):
            yield

    @contextmanager
    def _marked(self, key: str) -> Iterator[None]:
        body = self._open()
        yield
        self._close(body)
        one = tirx.const(1, "int32")
        self.add(tir_stmt.AttrStmt(one, key, one, self._sequence(body)))

    def _open(self) -> list[Stmt]:
        self._scopes.append([])
        return self._scopes[-1]

    def _close(self, body: list[Stmt]) -> None:
        if self._scopes.pop() is not body:
            raise RuntimeError("scopes of a kernel must close in the order they were opened")
        self._keep_whole(body)

    @staticmethod
    def _sequence(body: Sequence[Stmt]) -> Stmt:
        if not body:
            return tir_stmt.Evaluate(tirx.const(0, "int32"))
        return body[0] if len(body) == 1 else tir_stmt.SeqStmt(list(body))

    def finish(self) -> Stmt:
        """Return everything written."""
        (body,) = self._scopes
        self._keep_whole(body)
        whole = self._sequence(body)
        for text in self._imports:
            zero = tirx.const(0, "int32")
            whole = tir_stmt.AttrStmt(zero, "pragma_import_llvm", ir.StringImm(text), whole)
        return whole


def symbol_vars(names: Sequence[str]) -> Mapping[str, Expr]:
    """Return one index variable a symbol."""
    return {name: tirx.Var(name, INDEX) for name in names}
