"""Random expressions of a kind, as text. See scope.py for the kinds.

Every function takes the depth that is left; at 0 an expression is a name or a number.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.scope import Scope

# Functions of TensorFlow by what they take, as bodies call them.
F_TO_F = """tf.sigmoid tf.nn.softplus tf.nn.relu6 tf.nn.leaky_relu tf.nn.gelu tf.nn.silu tf.nn.softmax
    tf.nn.log_softmax tf.tanh tf.abs tf.sign tf.math.log_sigmoid tf.nn.relu tf.nn.elu tf.nn.selu
    tf.square tf.floor tf.round tf.math.ceil tf.identity tf.stop_gradient tf.zeros_like tf.ones_like
    tf.math.reciprocal_no_nan tf.negative tf.sin tf.cos tf.nn.l2_normalize tf.math.erf""".split()
FF_TO_F = """tf.add tf.subtract tf.multiply tf.maximum tf.minimum tf.math.divide_no_nan tf.divide
    tf.math.multiply_no_nan tf.math.squared_difference tf.math.floordiv tf.truediv""".split()
FF_TO_B = "tf.equal tf.not_equal tf.less tf.greater_equal tf.math.greater tf.less_equal".split()
REDUCE = "tf.reduce_sum tf.reduce_mean tf.reduce_max tf.reduce_min".split()
SAME = ["[::-1]", "[:, ::-1]", "[..., ::-1]", "[::-1, ::-1]", "[:]", "[-9:9]", "[..., :]",
        "[None][0]", "[:, None, :][:, 0]", "[..., None][..., 0]", "[:, :, None][:, :, -1]"]  # fmt: skip
PART = ["[0]", "[-1]", "[:1]", "[..., :1]", "[1:2]", "[2, 1]", "[:, 1:2]", "[-1:]", "[3:0:-4]",
        "[..., 0, None]", "[None, 1]", "[1, ..., 2]"]  # fmt: skip


class Expressions:
    """Makes expressions from what a scope has."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._makers: dict[str, Callable[[int], str]] = {
            "f": self.f, "i": self.i, "b": self.b, "int": self.int, "float": self.float,
            "dtype": lambda _: "d", "bool": self.bool, "str": self.str, "ints": self.ints, "tensors": self.tensors,
        }  # fmt: skip

    def of(self, kind: str, depth: int) -> str:
        """An expression of a kind."""
        return self._makers[kind](depth)

    def _name(self, kind: str) -> str:
        names = self.scope.of_kind(kind)
        # What was assigned last is what has not been tried yet.
        return self.scope.pick(names[-4:] if self.scope.chance(0.7) else names)

    def f(self, depth: int) -> str:
        """A floating tensor."""
        s, d = self.scope, depth - 1
        if depth <= 0:
            return self._name("f")
        kernels = s.options.for_kernels
        return s.weighted([
            (3, lambda: self._name("f")),
            (5, lambda: f"({self.f(d)} {s.pick('+-*/')} {self.f(d)})"),
            (1, lambda: f"({self.f(d)} {s.pick(['//', '%'])} {self.f(d)})"),
            (1, lambda: f"({self.f(d)} ** {s.pick(['2', '2.0', '0', 'k', '-1'])})"),
            (3, lambda: f"({self.f(d)} {s.pick('+-*')} {self._number(d)})"),
            (2, lambda: f"({self._number(d)} {s.pick('+-*')} {self.f(d)})"),
            (1, lambda: f"({self.f(d)} {s.pick(['/', '//', '%'])} {self._nonzero()})"),
            (2, lambda: f"(-{self.f(d)})"),
            (4, lambda: f"{s.pick(F_TO_F)}({self.f(d)})"),
            (2, lambda: f"{s.pick(FF_TO_F)}({self.f(d)}, {self.f(d)})"),
            (2, lambda: f"tf.where({self.b(d)}, {self.f(d)}, {self.f(d)})"),
            (1, lambda: f"tf.cast({self.of(s.pick('ib'), d)}, d)"),
            (3, lambda: self._full(d) + s.pick(SAME)),
            (2, lambda: self._full(d) + s.pick(PART)),
            (1, lambda: f"{self._full(d)}[{self.int(1)} % 4]"),
            (1, lambda: f"{self._full(d)}[{self.int(1)}:]" + f"[:{self.int(1)}:{self._step()}]"),
            (2, lambda: self._reduced(self._full(d), s.pick(REDUCE))),
            (1, lambda: self._product(d)),
            (2, lambda: f"({self.f(d)} if {self.bool(d)} else {self.f(d)})"),
            (2, lambda: self._joined(d)),
            (1, lambda: self._reshaped(d)),
            (2, lambda: f"{self.tensors(d)}[{self._index()}]"),
            (1, lambda: f"total({self.tensors(d)}, {self.f(d)})"),
            (0 if kernels else 1, lambda: f"tf.raw_ops.Cumsum(x={self.f(d)}, axis=0)"),
            (2, lambda: self._called(d)),
        ])  # fmt: skip

    def _full(self, depth: int) -> str:
        """A floating tensor that has all of [4, 3], mostly."""
        return self.scope.pick(["x", f"(x * {self.f(depth)})", f"(x + {self.f(depth)})"])

    def _product(self, depth: int) -> str:
        a, b, c = (self._full(min(depth, 1)) for _ in range(3))
        return self.scope.pick([
            f"({a} @ tf.transpose({b}) @ {c})",
            f"({a} @ tf.matmul({b}, {c}, transpose_a=True))",
            f"tf.matmul(tf.matmul({a}, {b}, transpose_b=True), {c})",
            f"tf.matmul({a}, {b})",
        ])  # fmt: skip

    def _number(self, depth: int) -> str:
        s = self.scope
        literals = ["2", "0.5", "-1", "3", "1.5", "0"]
        makers = [lambda: s.pick(literals), lambda: self.int(depth), lambda: self.float(depth)]
        return s.pick(makers)()

    def _nonzero(self) -> str:
        return self.scope.pick(["2", "3", "0.5", "-2", "x.shape[0]", "(k * k + 1)", "-1.5"])

    def _step(self) -> str:
        return self.scope.pick(["1", "2", "-1", "-2", "(1 if flag else -1)"])

    def _index(self) -> str:
        return self.scope.pick(["0", "-1", "1", "k % 2", "len(xs) - 1", "-len(xs)"])

    def _reduced(self, value: str, function: str) -> str:
        s = self.scope
        axis = s.pick(["", ", axis=0", ", axis=-1", ", axis=[0, 1]", ", 1", ", axis=[]"])
        keep = ", keepdims=True" if s.chance(0.7) else ""
        return f"{function}({value}{axis}{keep})"

    def _joined(self, depth: int) -> str:
        s = self.scope
        a, b = self._full(depth), self._full(depth)
        return s.pick([
            f"tf.concat([{a}[:2], {b}[2:]], axis=0)",
            f"tf.concat([{a}[:, :1], {b}[:, 1:]], 1)",
            f"tf.stack([{a}, {a}], axis={s.pick([0, 1, -1])})[{s.pick(['0', '-1', 'k % 2'])}]",
            f"tf.stack([{a}, {b}])[1]",
            f"tf.transpose(tf.transpose({a}))",
            f"tf.expand_dims({a}, 0)[0]",
            f"tf.squeeze({a}[None], axis=0)",
        ])  # fmt: skip

    def _reshaped(self, depth: int) -> str:
        value = self._full(depth)
        shape = self.scope.pick([
            "x.shape", "[-1, x.shape[1]]", "[x.shape[0], -1]", "(4, 3)", "[4, 3]", "tf.shape(x)",
            "[x.shape[0], x.shape[-1]]", "[y.shape[0]] + [3]", "x.shape[:1] + x.shape[1:]",
        ])  # fmt: skip
        return f"tf.reshape({value}, {shape})"

    def _called(self, depth: int) -> str:
        if not self.scope.helpers:
            return self.f(depth)
        name = self.scope.pick(list(self.scope.helpers))
        kinds = self.scope.helpers[name]
        arguments = [self.of(kind, min(depth, 1 if n < 2 else 0)) for n, kind in enumerate(kinds)]
        return f"{name}({', '.join(arguments)})"

    def i(self, depth: int) -> str:
        """An int32 tensor."""
        s, d = self.scope, depth - 1
        if depth <= 0:
            return self._name("i")
        return s.weighted([
            (3, lambda: self._name("i")),
            (3, lambda: f"({self.i(d)} {s.pick('+-*')} {self.i(d)})"),
            (2, lambda: f"({self.i(d)} {s.pick('&|^')} {self.i(d)})"),
            (2, lambda: f"({self.i(d)} {s.pick(['//', '%'])} {s.pick(['2', '3', '-2', '5'])})"),
            (2, lambda: f"({self.i(d)} {s.pick('+-*')} {self.int(d)})"),
            (1, lambda: f"({self.int(d)} {s.pick('+-*')} {self.i(d)})"),
            (1, lambda: f"({self.i(d)} {s.pick('&|^')} {self.int(0)})"),
            (2, lambda: f"({s.pick('-~')}{self.i(d)})"),
            (1, lambda: f"tf.cast({self.b(d)}, tf.int32)"),
            (1, lambda: self._reduced(f"(n * {self.i(d)})", s.pick(REDUCE[:1] + REDUCE[2:]))),
            (1, lambda: f"tf.where({self.b(d)}, {self.i(d)}, {self.i(d)})"),
            (1, lambda: f"({self.i(d)} if {self.bool(d)} else {self.i(d)})"),
            (2, lambda: f"(n + {self.i(d)})" + s.pick(SAME + PART)),
            (1, lambda: f"tf.shape({self.f(d)})[{s.pick([0, -1])}]"),
            (1, lambda: f"{s.pick(['tf.abs', 'tf.sign', 'tf.negative'])}({self.i(d)})"),
        ])  # fmt: skip

    def b(self, depth: int) -> str:
        """A bool tensor."""
        s, d = self.scope, depth - 1
        if depth <= 0:
            return self._name("b")
        compare = ["<", "<=", ">", ">=", "==", "!="]
        return s.weighted([
            (2, lambda: self._name("b")),
            (4, lambda: f"({self.f(d)} {s.pick(compare)} {self.f(d)})"),
            (2, lambda: f"({self.f(d)} {s.pick(compare)} {self._number(d)})"),
            (2, lambda: f"({self.i(d)} {s.pick(compare)} {self.i(d)})"),
            (1, lambda: f"({self.i(d)} {s.pick(compare)} {self.int(d)})"),
            (3, lambda: f"({self.b(d)} {s.pick('&|^')} {self.b(d)})"),
            (2, lambda: f"(~{self.b(d)})"),
            (1, lambda: f"{s.pick(FF_TO_B)}({self.f(d)}, {self.f(d)})"),
            (1, lambda: f"(p & {self.b(d)})" + s.pick(SAME + PART)),
            (1, lambda: self._reduced(f"(p | {self.b(d)})", s.pick(["tf.reduce_any", "tf.reduce_all"]))),
        ])  # fmt: skip

    def int(self, depth: int) -> str:
        """A known int."""
        s, d = self.scope, depth - 1
        if depth <= 0:
            return s.pick([self._name("int"), str(s.random.randint(-3, 5))])
        return s.weighted([
            (3, lambda: self._name("int")),
            (2, lambda: str(s.random.randint(-3, 5))),
            (4, lambda: f"({self.int(d)} {s.pick('+-*')} {self.int(d)})"),
            (2, lambda: f"({self.int(d)} {s.pick(['//', '%'])} {s.pick(['2', '-3', '4', 'len(xs)'])})"),
            (1, lambda: f"({self.int(d)} {s.pick(['//', '%'])} {self.int(d)})"),
            (1, lambda: f"({self.int(d)} ** {s.pick('0123')})"),
            (1, lambda: f"({self.int(d)} {s.pick('&|^')} {self.int(d)})"),
            (1, lambda: f"({self.int(d)} {s.pick(['<<', '>>'])} {s.pick('0123')})"),
            (2, lambda: f"({s.pick('-~+')}{self.int(d)})"),
            (2, lambda: self.f(d) + ".shape[" + s.pick(["0", "-1"]) + "]"),
            (1, lambda: f"{s.pick(['x', 'y', 'n'])}.shape.rank"),
            (1, lambda: f"len({self.of(s.pick(['ints', 'tensors', 'str']), d)})"),
            (1, lambda: f"len({self.f(d)}.shape)"),
            (1, lambda: f"({self.ints(d)} + [{self.int(0)}])[{s.pick(['0', '-1', '0', 'k'])}]"),
            (2, lambda: f"({self.int(d)} if {self.bool(d)} else {self.int(d)})"),
            (1, lambda: f"({self.int(d)} {s.pick(['and', 'or'])} {self.int(d)})"),
            (1, lambda: f"({self.bool(d)} + {self.int(d)})"),
            (1, lambda: f"add_up({self.ints(d)})"),
        ])  # fmt: skip

    def float(self, depth: int) -> str:
        """A known float."""
        s, d = self.scope, depth - 1
        if depth <= 0:
            return s.pick([self._name("float"), s.pick(["0.5", "-1.5", "2.0", "0.0", "1e3"])])
        return s.weighted([
            (3, lambda: self._name("float")),
            (2, lambda: s.pick(["0.5", "-1.5", "2.0", "0.25", "-0.0"])),
            (3, lambda: f"({self.float(d)} {s.pick('+-*')} {self._number(d)})"),
            (2, lambda: f"({self.int(d)} / {s.pick(['2', '4', '-8', self.int(0)])})"),
            (1, lambda: f"({self.float(d)} {s.pick(['//', '%', '/'])} {s.pick(['0.5', '-2', 'r'])})"),
            (1, lambda: f"({self.float(d)} ** {s.pick('0123')})"),
            (1, lambda: f"(-{self.float(d)})"),
            (1, lambda: f"({self.float(d)} if {self.bool(d)} else {self.float(d)})"),
        ])  # fmt: skip

    def bool(self, depth: int) -> str:
        """A known bool."""
        s, d = self.scope, depth - 1
        if depth <= 0:
            return s.pick([self._name("bool"), "True", "False"])
        compare = ["<", "<=", ">", ">=", "==", "!="]
        return s.weighted([
            (2, lambda: self._name("bool")),
            (4, lambda: f"({self.int(d)} {s.pick(compare)} {self.int(d)})"),
            (2, lambda: f"({self._number(d)} {s.pick(compare)} {self._number(d)})"),
            (2, lambda: f"({self.int(d)} {s.pick(compare)} {self.int(d)} {s.pick(compare)} "
                        f"{self.int(d)})"),
            (2, lambda: f"(not {self.of(s.pick(['bool', 'int', 'ints', 'str']), d)})"),
            (2, lambda: f"({self.bool(d)} {s.pick(['and', 'or'])} {self.bool(d)})"),
            (1, lambda: f"({self.bool(d)} {s.pick('&|^')} {self.bool(d)})"),
            (1, lambda: f"({self.int(d)} {s.pick(['in', 'not in'])} {self.ints(d)})"),
            (1, lambda: f"({self.str(d)} {s.pick(['==', '!=', 'in', '<'])} {self.str(d)})"),
            (1, lambda: f"({s.pick(['x', 'n', 'p'])}.dtype {s.pick(['==', '!='])} "
                        f"{s.pick(['tf.float32', 'tf.int32', 'd'])})"),
            (1, lambda: f"({self.ints(d)} {s.pick(['==', '!='])} {self.ints(d)})"),
            (1, lambda: f"(x.shape {s.pick(['==', '!='])} {s.pick(['y.shape', 'n.shape', '[4, 3]'])})"),
            (1, lambda: f"bool({self.of(s.pick(['int', 'float', 'str']), d)})"),
        ])  # fmt: skip

    def str(self, depth: int) -> str:
        """A known string."""
        s, d = self.scope, depth - 1
        if depth <= 0:
            return s.pick([self._name("str"), "'a'", "'bé'", "''"])
        return s.weighted([
            (3, lambda: self._name("str")),
            (1, lambda: s.pick(["'a'", "'abc'", "'é'"])),
            (2, lambda: f"({self.str(d)} + {self.str(d)})"),
            (1, lambda: f"({self.str(d)} * {s.pick(['2', '0', '-1', '3'])})"),
            (1, lambda: f"{self.str(d)}[{s.pick(['::-1', '1:', ':-1', '0:1', '-2:'])}]"),
            (1, lambda: f"({self.str(d)} if {self.bool(d)} else {self.str(d)})"),
        ])  # fmt: skip

    def ints(self, depth: int) -> str:
        """A list of ints."""
        s, d = self.scope, depth - 1
        if depth <= 0:
            return self._name("ints")
        v = s.fresh("v")

        def comprehension() -> str:
            source = s.pick([self.ints(d), f"range({self.int(0)} % 5)", "x.shape"])
            with s.block(**{v: "int"}):
                test = f" if {self.bool(d)}" if s.chance(0.4) else ""
                return f"[{self.int(d)} for {v} in {source}{test}]"

        return s.weighted([
            (3, lambda: self._name("ints")),
            (2, lambda: f"[{', '.join(self.int(d) for _ in range(s.random.randint(1, 3)))}]"),
            (1, lambda: f"list(range({s.pick('01234')}))"),
            (1, lambda: f"list(range({s.pick('456')}, {self.int(0)} % 4, {s.pick(['-1', '-2'])}))"),
            (2, comprehension),
            (1, lambda: f"({self.ints(d)} + {self.ints(d)})"),
            (1, lambda: f"{self.ints(d)}[{s.pick(['::-1', '1:', ':-1', ':2', '-2:', '::2'])}]"),
            (1, lambda: f"list(reversed({self.ints(d)}))"),
            (1, lambda: f"({self.ints(d)} * {s.pick(['2', '0'])})"),
            (1, lambda: f"list({self.f(d)}.shape)"),
            (1, lambda: f"({self.ints(d)} if {self.bool(d)} else {self.ints(d)})"),
        ])  # fmt: skip

    def tensors(self, depth: int) -> str:
        """A list of floating tensors."""
        s, d = self.scope, depth - 1
        if depth <= 0:
            return self._name("tensors")
        v, w = s.fresh("t"), s.fresh("j")

        def comprehension() -> str:
            with s.block(**{v: "f"}):
                test = f" if {self.bool(d)}" if s.chance(0.3) else ""
                return f"[{self.f(d)} for {v} in {self._name('tensors')}{test}]"

        def enumerated() -> str:
            with s.block(**{v: "f", w: "int"}):
                return f"[{self.f(d)} for {w}, {v} in enumerate({self._name('tensors')})]"

        return s.weighted([
            (3, lambda: self._name("tensors")),
            (2, lambda: f"[{', '.join(self.f(d) for _ in range(s.random.randint(1, 3)))}]"),
            (2, comprehension),
            (1, enumerated),
            (2, lambda: f"({self.tensors(d)} + [{self.f(d)}])"),
            (1, lambda: f"{self.tensors(d)}[{s.pick(['::-1', ':2', '-2:', ':-1'])}]"),
            (1, lambda: f"list(reversed({self.tensors(d)}))"),
        ])  # fmt: skip
