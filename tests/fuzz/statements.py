"""Random statements, as indented lines.

A name keeps its kind for the whole program, and a name that only one branch assigns is not read
after it, so that a program is wrong in its values at most. Loops end: each has a counter of its
own, and known values that a loop assigns stay small.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from tests.fuzz.expressions import Expressions
from tests.fuzz.scope import Scope

Lines = list[str]

_NONE: Mapping[str, str] = {}

_KINDS = ["f", "f", "f", "f", "i", "b", "int", "int", "float", "bool", "str", "ints", "tensors",
          "tuple", "nested"]  # fmt: skip
_IN_LOOPS = ["f", "f", "f", "f", "i", "b", "int", "bool", "grown"]
_PREFIX = {"f": "a", "i": "m", "b": "q", "int": "c", "float": "g", "bool": "w", "str": "z",
           "ints": "ls", "tensors": "ts", "tuple": "tu", "nested": "ns"}  # fmt: skip
_AUGMENTED = {"f": ["+=", "-=", "*="], "i": ["+=", "*=", "-=", "|=", "&=", "^="],
              "b": ["&=", "|=", "^="], "int": ["+=", "-="], "bool": ["&=", "^="]}  # fmt: skip


class Statements:
    """Makes blocks of statements over the names of a scope."""

    def __init__(self, scope: Scope, expressions: Expressions) -> None:
        self._scope = scope
        self._expressions = expressions

    def block(self, size: int, depth: int) -> Lines:
        """Some statements, `size` at most; compound ones nest `depth` deep."""
        lines: Lines = []
        for _ in range(self._scope.random.randint(2, size)):
            lines += self._statement(depth)
        return lines

    def _statement(self, depth: int) -> Lines:
        deep = 1 if depth > 0 else 0
        in_loop = 1 if self._scope.in_loop else 0
        return self._scope.weighted([
            (8, self._assign),
            (3, self._augmented),
            (2, self._tuples),
            (4 * deep, lambda: self._if(depth)),
            (3 * deep, lambda: self._for(depth)),
            (1 * deep, lambda: self._while(depth)),
            (1, self._return),
            (1, self._local_function),
            (1, self._shared),
            (1, self._iterator),
            (2 * in_loop, self._leave),
            (deep, lambda: [f"if {self._expressions.whole(1)} > 5:", "    raise ValueError('no')"]),
        ])  # fmt: skip

    def condition(self) -> str:
        """What decides a branch: a known value of any kind."""
        scope = self._scope
        if scope.options.tensor_conditions and scope.chance(0.3):
            return self.tensor_condition()
        kind = scope.pick(["bool", "bool", "bool", "bool", "int", "ints", "str", "tensors"])
        return self._expressions.of(kind, 2)

    def tensor_condition(self) -> str:
        """What decides a branch when the op runs: a tensor of one element."""
        reduce = self._scope.pick(["tf.reduce_any", "tf.reduce_all"])
        return f"{reduce}({self._expressions.b(2)})"

    def _value(self, kind: str) -> str:
        text = self._expressions.of(kind, self._scope.pick([1, 2, 2, 3]))
        # What a loop assigns must not grow with its trips.
        return f"({text}) % 7" if kind == "int" and self._scope.in_loop else text

    def _target(self, kind: str) -> str:
        scope = self._scope
        names = [name for name in scope.of_kind(kind) if name not in scope.protected]
        if names and scope.chance(0.6):
            return scope.pick(names)
        name = scope.fresh(_PREFIX[kind])
        scope.names[name] = kind
        return name

    def _kind(self) -> str:
        return self._scope.pick(_IN_LOOPS[:-1] if self._scope.in_loop else _KINDS)

    def _assign(self) -> Lines:
        scope = self._scope
        if scope.in_loop and scope.chance(0.1):
            kind = scope.pick(["ints", "tensors"])
            names = [n for n in scope.of_kind(kind) if n not in scope.protected]
            added = self._value("int" if kind == "ints" else "f")
            name = scope.pick(names) if names else scope.fresh("ls")
            if not names:
                return [f"{name} = [{added}]"]
            return [f"{name} = {name} + [{added}]"]
        kind = self._kind()
        value = self._value(kind)  # before the target is known: it may not read itself
        if scope.chance(0.1):
            return [f"{self._target(kind)} = {self._target(kind)} = {value}"]
        return [f"{self._target(kind)} = {value}"]

    def _augmented(self) -> Lines:
        scope = self._scope
        kind = scope.pick(["f", "f", "int"] if scope.options.for_kernels else list(_AUGMENTED))
        names = [name for name in scope.of_kind(kind) if name not in scope.protected]
        if not names:
            return self._assign()
        value = scope.pick("123") if kind == "int" else self._value(kind)
        if kind in "fi" and scope.chance(0.3):
            value = self._expressions.whole(1)
        return [f"{scope.pick(names)} {scope.pick(_AUGMENTED[kind])} {value}"]

    def _shared(self) -> Lines:
        """A second name for a list or a tuple, which is then changed as Python changes it."""
        scope, make = self._scope, self._expressions
        kind = scope.pick(["ints", "tuple"])
        name = scope.fresh(_PREFIX[kind])
        held = make.of("nested", 1) + scope.pick(["[0]", "[-1]"])
        value = make.of("tuple", 1) if kind == "tuple" else scope.pick([make.of("ints", 0), held])
        scope.names[name] = kind
        if kind == "tuple":
            return [f"{name} = {value}", f"{name} {scope.pick(['+= (1, k)', '*= 2', '+= ()'])}"]
        if scope.chance(0.5):
            return [f"{name} = {value}"]
        return [f"{name} = {value}", f"{name} {scope.pick(['+= [k]', '*= 2', '+= (1, 2)'])}"]

    def _iterator(self) -> Lines:
        """A name for an iterator, and a loop over it, or two."""
        scope, make = self._scope, self._expressions
        name, a, b, total = (scope.fresh(p) for p in ("it", "v", "v", "c"))
        made = scope.pick([
            f"zip({make.of('ints', 1)}, {make.of('tuple', 1)})",
            f"enumerate({make.of('ints', 1)})",
            f"zip(range(3), reversed({make.of('ints', 1)}))",
        ])  # fmt: skip
        loop = [f"for {a}, {b} in {name}:", f"    {total} = ({total} + {a} * {b}) % 7"]
        lines = [f"{name} = {made}", f"{total} = 0", *loop]
        scope.names[total] = "int"
        return lines + loop if scope.chance(0.1) else lines

    def _tuples(self) -> Lines:
        scope = self._scope
        first, second, third = self._kind(), self._kind(), self._kind()
        a, b, c = self._value(first), self._value(second), self._value(third)
        if scope.chance(0.3):
            names = [n for n in scope.of_kind("f") if n not in scope.protected]
            one, other = (scope.pick(names or ["x"]) for _ in range(2))
            return [f"{one}, {other} = {other}, {one}"]
        if scope.chance(0.5):
            return [f"{self._target(first)}, {self._target(second)} = {a}, {b}"]
        targets = [self._target(kind) for kind in (first, second, third)]
        return [f"{targets[0]}, ({targets[1]}, {targets[2]}) = {a}, ({b}, {c})"]

    def _if(self, depth: int) -> Lines:
        lines = [f"if {self.condition()}:", *self._indented(depth)]
        if self._scope.chance(0.3):
            lines += [f"elif {self.condition()}:", *self._indented(depth)]
        if self._scope.chance(0.6):
            lines += ["else:", *self._indented(depth)]
        return lines

    def _indented(
        self, depth: int, first: Sequence[str] = (), names: Mapping[str, str] = _NONE
    ) -> Lines:
        scope = self._scope
        helpers = dict(scope.helpers)
        with scope.block(**names):
            lines = [*first, *self.block(3, depth - 1)]
        scope.helpers = helpers
        return [f"    {line}" for line in lines]

    def _for(self, depth: int) -> Lines:
        scope, make = self._scope, self._expressions
        t, i, j, c = (scope.fresh(p) for p in "tijc")

        def rows() -> tuple[str, str, dict[str, str]]:
            return t, scope.pick(["x", "y"]), {t: "f"}

        makers: list[Callable[[], tuple[str, str, dict[str, str]]]] = [
            lambda: (i, f"range({make.whole(1)} % 4)", {i: "int"}),
            lambda: (i, f"range({make.whole(0)} % 3, 5, 2)", {i: "int"}),
            lambda: (i, f"range(3, {make.whole(0)} % 4 - 2, -1)", {i: "int"}),
            lambda: (i, "range(len(xs))", {i: "int"}),
            lambda: (i, make.ints(1), {i: "int"}),
            lambda: (i, f"{scope.pick(['x', 'y', 'n'])}.shape", {i: "int"}),
            lambda: (t, make.tensors(1), {t: "f"}),
            lambda: (t, f"reversed({make.tensors(1)})", {t: "f"}),
            rows,
            lambda: (f"{i}, {t}", f"enumerate({make.tensors(1)})", {i: "int", t: "f"}),
            lambda: (f"{i}, {t}", f"enumerate({make.tensors(1)}, {make.whole(0)})",
                     {i: "int", t: "f"}),
            lambda: (f"{t}, {i}", f"zip({make.tensors(1)}, {make.ints(1)})", {i: "int", t: "f"}),
            lambda: (f"{i}, ({t}, {j})", f"enumerate(zip({make.tensors(1)}, range(9)))",
                     {i: "int", t: "f", j: "int"}),
            lambda: (f"{i}, {j}", f"(({make.whole(1)}, 2), (3, {make.whole(1)}))",
                     {i: "int", j: "int"}),
            lambda: (c, f"{make.text(1)}[:4]", {c: "str"}),
        ]  # fmt: skip
        if scope.options.for_kernels:
            makers = [make_ for make_ in makers if make_ is not rows]
        target, items, names = scope.pick(makers)()
        scope.in_loop += 1
        lines = [f"for {target} in {items}:", *self._indented(depth, names=names)]
        scope.in_loop -= 1
        return lines + self._else(depth)

    def _while(self, depth: int) -> Lines:
        scope = self._scope
        counter = scope.fresh("c")
        scope.names[counter] = "int"
        scope.protected.add(counter)
        test = f"{counter} < {scope.pick('1234')}"
        if scope.options.tensor_conditions and scope.chance(0.5):
            test += f" {scope.pick(['and', 'and not'])} {self.tensor_condition()}"
        elif scope.chance(0.5):
            test += f" {scope.pick(['and', 'and not'])} {self._expressions.truth(1)}"
        scope.in_loop += 1
        body = self._indented(depth, first=[f"{counter} += 1"])
        scope.in_loop -= 1
        return [f"{counter} = 0", f"while {test}:", *body, *self._else(depth)]

    def _else(self, depth: int) -> Lines:
        return ["else:", *self._indented(depth)] if self._scope.chance(0.2) else []

    def _leave(self) -> Lines:
        word = self._scope.pick(["break", "continue"])
        return [f"if {self.condition()}:", f"    {word}"]

    def _return(self) -> Lines:
        """An early return under a condition: one on all paths would hide what follows."""
        return [f"if {self.condition()}:", f"    {self.returned(1)}"]

    def returned(self, depth: int) -> str:
        """A return statement of the function that is being made."""
        values = [self._expressions.of(kind, depth) for kind in self._scope.results]
        return f"return {', '.join(values)}"

    def _local_function(self) -> Lines:
        scope = self._scope
        kinds = [scope.pick(["f", "f", "int", "bool"]) for _ in range(scope.pick([1, 2]))]
        name, parameters = scope.fresh("fn"), [scope.fresh("u") for _ in kinds]
        with scope.block(**dict(zip(parameters, kinds, strict=True))):
            result = self._expressions.f(2)
        # A function sees what a name is when it is called: the language has names that functions
        # read assigned once.
        scope.protected |= {n.id for n in ast.walk(ast.parse(result)) if isinstance(n, ast.Name)}
        scope.helpers[name] = kinds
        with scope.block():
            if scope.chance(0.6):
                return [f"{name} = lambda {', '.join(parameters)}: {result}"]
            local = scope.fresh("a")
            return [
                f"def {name}({', '.join(parameters)}):",
                f"    {local} = {result}",
                f"    return {local} * 2" if scope.chance(0.5) else f"    return {local}",
            ]
