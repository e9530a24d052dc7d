"""The same function with guards: accesses that are not proven are looked at while it runs.

In front of each statement stand assertions that those of its loads and its store that are not
proven to be so are inside of their buffers, and that no integer is divided by 0. A guarded function
that goes wrong ends with an error, before it has touched what is not its own. It is for a kernel's
check, and slower than its calls may be.

Not here: races, which several tasks of the check may show.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import ir, tirx
from tvm.tirx import stmt as tir_stmt

from composite.compiler.tvm.proof.expressions import children
from composite.compiler.tvm.proof.walk import Walk

_INDEX = "int64"
_DIVISIONS = (tirx.Div, tirx.Mod, tirx.FloorDiv, tirx.FloorMod)


def guarded(functions: Mapping[str, Any], minimums: Mapping[str, int]) -> dict[str, Any]:
    """Return TIR functions with guards, by the same names."""
    return {name: _Guards(name, one, minimums).run() for name, one in functions.items()}


class _Guards:
    def __init__(self, name: str, function: Any, minimums: Mapping[str, int]) -> None:
        walk = Walk(name, function, minimums, each=True)
        walk.run()
        self._outside = walk.outside  # kept, lest others have their places in memory
        self._places = {hash(access) for access in walk.outside}
        self._function = function
        self._sizes: dict[str, Any] = {}
        self._count = 0

    def run(self) -> Any:
        for buffer in self._function.params:
            self._declare(buffer)
        return self._function.with_body(self._body(self._function.body))

    def _declare(self, buffer: Any) -> None:
        # A flat view of an argument is as large as that, whatever it says itself.
        name = buffer.name.removesuffix("_flat")
        if name == buffer.name or name not in self._sizes:
            name, shape = buffer.name, [_wide(dim) for dim in buffer.shape]
            self._sizes[name] = functools.reduce(tirx.Mul, shape, _const(1))
        self._sizes[buffer.name] = self._sizes[name]

    def _body(self, s: Any) -> Any:
        found = self._statement(s)
        return found[0] if len(found) == 1 else tirx.SeqStmt(found)

    def _statement(self, s: Any) -> list[Any]:
        """Return a statement behind its guards; all in one scope, which a declaration needs."""
        kind = type(s)
        if kind is tirx.SeqStmt:
            return [one for part in s.seq for one in self._statement(part)]
        if kind is tirx.AllocBuffer or kind is tirx.DeclBuffer:
            self._declare(s.buffer)
            return [s]
        if kind is tirx.For:
            made = tirx.For(s.loop_var, s.min, s.extent, s.kind, self._body(s.body))
            return [*self._guards(s.min), *self._guards(s.extent), made]
        if kind is tirx.IfThenElse:
            other = None if s.else_case is None else self._body(s.else_case)
            made = tirx.IfThenElse(s.condition, self._body(s.then_case), other)
            return [*self._guards(s.condition), made]
        if kind is tirx.AttrStmt:
            return [tirx.AttrStmt(s.node, s.attr_key, s.value, self._body(s.body))]
        if kind is tir_stmt.BufferStore:
            own = self._within(s, s.buffer.name, s.indices)
            return [*self._guards(s.value), *own, s]
        return [*self._guards(s.condition if kind is tirx.AssertStmt else s.value), s]

    def _guards(self, e: Any) -> list[Any]:
        """Return the assertions of what is evaluated with an expression, what is read first first.

        No expression is evaluated in part: a Select has both of its values.
        """
        if isinstance(e, ir.TensorLoad):
            return self._within(e, e.source.name, e.indices)
        if isinstance(e, ir.Call):
            if getattr(e.op, "name", "") in {"tirx.address_of", "tirx.prefetch"}:
                return []  # touches nothing; a prefetch never faults
            parts: Sequence[Any] = [one for one in e.args if isinstance(one, ir.Expr)]
        else:
            parts = children(e)
        found = [guard for part in parts for guard in self._guards(part)]
        if isinstance(e, _DIVISIONS) and str(e.ty.dtype).startswith(("int", "uint")):
            found += self._nonzero(e.b)
        return found

    def _nonzero(self, divisor: Any) -> list[Any]:
        value = divisor.value if isinstance(divisor, tirx.Broadcast) else divisor
        if isinstance(value, tirx.IntImm) and int(value.value) != 0:
            return []
        return self._each(divisor, lambda one: tirx.NE(one, _const(0)), "a divisor is 0")

    def _within(self, access: Any, name: str, indices: Sequence[Any]) -> list[Any]:
        """Return the assertions that an access is inside of its buffer, if that is not proven."""
        found = [guard for one in indices for guard in self._guards(one)]
        if hash(access) not in self._places:
            return found
        (index,) = indices
        size = self._sizes[name]
        known = isinstance(index, tirx.IntImm) and isinstance(size, tirx.IntImm)
        if known and 0 <= int(index.value) < int(size.value):
            return found

        def inside(one: Any) -> Any:
            return tirx.And(tirx.GE(one, _const(0)), tirx.LT(one, size))

        return found + self._each(index, inside, f"an index of {name} is outside of it")

    def _each(self, e: Any, holds: Callable[[Any], Any], message: str) -> list[Any]:
        """Return the assertions that something holds for each lane of an integer."""
        if isinstance(e, tirx.Broadcast):
            e = e.value
        if isinstance(e, tirx.Ramp):  # between its first and its last
            last = e.base + e.stride * tirx.const(int(e.lanes) - 1, str(e.stride.ty.dtype))
            return [_assert(holds(_wide(end)), message) for end in (e.base, last)]
        lanes = int(e.ty.dtype.lanes)
        if lanes == 1:
            return [_assert(holds(_wide(e)), message)]
        dtype = str(e.ty.dtype).partition("x")[0]
        cells = tirx.decl_buffer((lanes,), dtype, self._name("guarded"), scope="local")
        keep = {"disable_lower_builtin": tirx.IntImm("bool", 1)}
        every = tirx.Ramp(_const(0), _const(1), lanes)
        lane = tirx.Var(self._name("lane"), _INDEX)
        one = _wide(tirx.BufferLoad(cells, [lane]))
        body = _assert(holds(one), message)
        return [
            tir_stmt.AllocBuffer(cells, keep),
            tir_stmt.BufferStore(cells, e, [every]),
            tirx.For(lane, _const(0), _const(lanes), tir_stmt.ForKind.SERIAL, body),
        ]

    def _name(self, hint: str) -> str:
        self._count += 1
        return f"{hint}_{self._count}"


def _const(value: int) -> Any:
    return tirx.const(value, _INDEX)


def _wide(e: Any) -> Any:
    return e if str(e.ty.dtype) == _INDEX else tirx.Cast(_INDEX, e)


def _assert(condition: Any, message: str) -> Any:
    # The kind is none that lets a call run the expansion instead: the kernel is at fault.
    return tir_stmt.AssertStmt(condition, ir.StringImm("AssertionError"), [ir.StringImm(message)])
