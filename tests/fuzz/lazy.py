"""A program in Python in which an error counts only if its value is used.

TensorFlow computes what is fetched, and the compiler drops what nothing reads: an expression that
would raise, but whose value goes nowhere, raises in Python alone. Here each expression that raises
gives a value that no expression can use and no result can hold; names that such a value is assigned
to have it each. A condition that would raise is decided one way or the other, and a loop over one
makes one trip or none: if both give the same, nothing needs it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tests.fuzz import dtypes
from tests.fuzz.program import Program


class _Raises:
    """What has an error for a value: every use of it raises that."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def _use(self, *_: object, **__: object) -> Any:
        raise self.error

    __bool__ = __getitem__ = __contains__ = __call__ = __index__ = _use
    __float__ = __int__ = __round__ = __abs__ = __neg__ = __invert__ = _use
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _use
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _use
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = _use
    __matmul__ = __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __divmod__ = _use
    __rmatmul__ = __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = __rdivmod__ = _use
    __tf_tensor__ = __array__ = _use
    __hash__ = None  # type: ignore[assignment]


class Unusable(_Raises):
    """The value of an expression that raised; every use of it raises, but for dtype and shape.

    What is known of these without a tensor's value needs nothing.
    """

    def __init__(self, error: Exception, known: Callable[[], tf.TensorSpec | None]) -> None:
        super().__init__(error)
        self._known = known

    __len__ = __iter__ = _Raises._use

    @functools.cached_property
    def known(self) -> tf.TensorSpec | None:
        return self._known()

    @property
    def dtype(self) -> tf.DType:
        if self.known is None:
            raise self.error
        return self.known.dtype

    @property
    def shape(self) -> UnusableShape:
        if self.known is None or self.known.shape.rank is None:
            raise self.error
        return UnusableShape(self.error, self.known.shape.as_list())


class UnusableShape(_Raises):
    """The shape of a value that cannot be used: nor can its dims, but for those that are known."""

    def __init__(self, error: Exception, dims: list[int | None]) -> None:
        super().__init__(error)
        self.rank = len(dims)
        self._dims = dims

    def __len__(self) -> int:
        return self.rank

    def __bool__(self, *_: object, **__: object) -> Any:
        return True  # as of every tf.TensorShape whose rank is known

    def __iter__(self) -> Any:
        # To count the dims, or to put something for each into a list, needs none of them.
        nothing = Unusable(self.error, lambda: None)
        return iter([nothing if dim is None else dim for dim in self._dims])

    def __getitem__(self, *place: object, **_: object) -> Any:
        at = place[0]
        return list(self)[at] if isinstance(at, int) else self._use()


def python_function(program: Program, decision: bool) -> Callable[..., Any]:
    """The body of a program as Python, with errors that wait; raises those that the result holds.

    `decision` is what a condition is that raises.
    """
    function = program.as_python(Waits(), f"<fuzz {program.seed} lazy>", names(decision))
    return lambda *args, **attrs: usable(function(*args, **attrs))


def names(decision: bool | None) -> dict[str, Any]:
    """What a program uses that `Waits` changed; `decision` None: a condition that raises does."""

    def decided(value: Any) -> Any:
        if not isinstance(value, Unusable):
            return value
        if decision is None:
            raise value.error
        return decision

    known = dtypes.Known()

    def waits(expression: Callable[[], Any]) -> Any:
        try:
            value = expression()
        except Exception as error:  # noqa: BLE001 - whatever the program raises
            return Unusable(error, known.later(expression))
        known.remember(value, expression)
        return value

    def items(value: Any, names: Any) -> Any:
        """What a loop goes through: of what cannot be gone through, one item or none."""
        found = _list(value)
        found = [found] * decided(found) if isinstance(found, Unusable) else found
        return [_spread(item, names) for item in found]

    return {"_waits": waits, "_spread": _spread, "_items": items, "_decided": decided,
            "_shape": dtypes.shape}  # fmt: skip


def usable(result: Any) -> Any:
    """A result that can be used. Raises the error of a value in it that cannot."""
    for value in tf.nest.flatten(result):
        if isinstance(value, Unusable):
            raise value.error
    return result


def _list(value: Any) -> Any:
    """The items of a value; of one that cannot be gone through, an error that waits."""
    try:
        return list(value)
    except Exception as error:  # noqa: BLE001 - whatever the program raises
        return Unusable(error, lambda: None)


def _spread(value: Any, names: Any) -> Any:
    """A value for each of the names that it is assigned to, which may stand in nested tuples."""
    if names is None:
        return value
    items = _list(value)
    if not isinstance(items, Unusable) and len(items) != len(names):
        items = Unusable(ValueError(f"{len(items)} values for {len(names)} names"), lambda: None)
    items = [items] * len(names) if isinstance(items, Unusable) else items
    return [_spread(item, name) for item, name in zip(items, names, strict=True)]


class Waits(ast.NodeTransformer):
    """Puts each expression that can raise into `_waits(lambda: ...)`."""

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        if len(node.targets) == 1:
            node.value = _call("_spread", [node.value, _names(node.targets[0])])
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        assert isinstance(node.target, ast.Name)
        read = ast.Name(node.target.id, ast.Load())
        return self.visit(ast.Assign([node.target], ast.BinOp(read, node.op, node.value)))

    def visit_If(self, node: Any) -> Any:
        node = self.generic_visit(node)
        node.test = _call("_decided", [node.test])
        return node

    visit_While = visit_If

    def visit_For(self, node: Any) -> Any:
        node = self.generic_visit(node)
        node.iter = _call("_items", [node.iter, _names(node.target)])
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if _is_name(node):
            return node
        if node.attr != "shape":
            return self._wrapped(node)
        return _waiting(_call("_shape", [self.visit(node.value)]))

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        node.value = self.visit(node.value)
        if not any(isinstance(part, ast.Slice) for part in ast.walk(node.slice)):
            node.slice = self.visit(node.slice)
        return _waiting(node)

    def _wrapped(self, node: Any) -> Any:
        return _waiting(self.generic_visit(node))

    visit_BinOp = visit_UnaryOp = visit_Compare = visit_Call = _wrapped
    visit_ListComp = visit_IfExp = visit_BoolOp = _wrapped


def _is_name(node: ast.expr) -> bool:
    """Whether it is a name of TensorFlow's, as `tf.nn.relu` is."""
    if isinstance(node, ast.Attribute):
        return _is_name(node.value)
    return isinstance(node, ast.Name) and node.id == "tf"


def _names(target: ast.expr) -> ast.expr:
    """The names of a target as `_spread` takes them: None for one, a tuple for several."""
    if isinstance(target, ast.Tuple):
        return ast.Tuple([_names(one) for one in target.elts], ast.Load())
    return ast.Constant(None)


def _waiting(node: Any) -> ast.Call:
    none = ast.arguments([], [], None, [], [], None, [])
    return _call("_waits", [ast.Lambda(none, node)])


def _call(name: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), arguments, [])
