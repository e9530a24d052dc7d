"""Random expressions that are tensors. See scope.py for the kinds."""

from __future__ import annotations

from tests.fuzz.choices import COMPARE, Choices

# Functions of TensorFlow by what they take, as bodies call them.
F_TO_F = ["tf." + name for name in (
    "sigmoid", "nn.softplus", "nn.relu6", "nn.leaky_relu", "nn.gelu", "nn.silu", "nn.softmax",
    "nn.log_softmax", "tanh", "abs", "sign", "math.log_sigmoid", "nn.relu", "nn.elu", "nn.selu",
    "square", "floor", "round", "math.ceil", "identity", "stop_gradient", "zeros_like",
    "ones_like", "math.reciprocal_no_nan", "negative", "sin", "cos", "nn.l2_normalize", "math.erf",
)]  # fmt: skip
FF_TO_F = ["tf." + name for name in (
    "add", "subtract", "multiply", "maximum", "minimum", "math.divide_no_nan", "divide", "truediv",
    "math.multiply_no_nan", "math.squared_difference", "math.floordiv",
)]  # fmt: skip
FF_TO_B = ["tf.equal", "tf.not_equal", "tf.less", "tf.greater_equal", "tf.math.greater"]
REDUCE = ["tf.reduce_sum", "tf.reduce_mean", "tf.reduce_max", "tf.reduce_min"]
LOGICAL = ["tf.reduce_any", "tf.reduce_all"]
SAME = ["[::-1]", "[:, ::-1]", "[..., ::-1]", "[::-1, ::-1]", "[:]", "[-9:9]", "[..., :]",
        "[None][0]", "[:, None, :][:, 0]", "[..., None][..., 0]",
        "[:, :, None][:, :, -1]"]  # fmt: skip
PART = ["[0]", "[-1]", "[:1]", "[..., :1]", "[1:2]", "[2, 1]", "[:, 1:2]", "[-1:]", "[3:0:-4]",
        "[..., 0, None]", "[None, 1]", "[1, ..., 2]"]  # fmt: skip


class Tensors(Choices):
    """Makes floating, int32 and bool tensors."""

    def f(self, depth: int) -> str:
        """A floating tensor."""
        s, d, rich = self.scope, depth - 1, self.rich
        if depth <= 0:
            return self.name("f")
        return s.weighted([
            (3, lambda: self.name("f")),
            (5, lambda: f"({self.f(d)} {s.pick('+-*/')} {self.f(d)})"),
            (1, lambda: f"({self.f(d)} {s.pick(['//', '%'])} {self.f(d)})"),
            (1, lambda: f"({self.f(d)} ** {s.pick(['2', '2.0', '0', 'k', '-1'])})"),
            (3, lambda: f"({self.f(d)} {s.pick('+-*')} {self.number(d)})"),
            (2, lambda: f"({self.number(d)} {s.pick('+-*')} {self.f(d)})"),
            (1, lambda: f"({self.f(d)} {s.pick(['/', '//', '%'])} {self._nonzero()})"),
            (2, lambda: f"(-{self.f(d)})"),
            (4, lambda: f"{s.pick(F_TO_F)}({self.f(d)})"),
            (2, lambda: f"{s.pick(FF_TO_F)}({self.f(d)}, {self.f(d)})"),
            (2, lambda: f"tf.where({self.b(d)}, {self.f(d)}, {self.f(d)})"),
            (1, lambda: f"tf.cast({self.of(s.pick('ib'), d)}, d)"),
            (3 * rich, lambda: self._full(d) + s.pick(SAME)),
            (2 * rich, lambda: self._full(d) + s.pick(PART)),
            (1 * rich, lambda: f"{self._full(d)}[{self.of('int', 1)} % 4]"),
            (1 * rich, lambda: self._full(d) + f"[{self.of('int', 1)}:]" + self._slice()),
            (2, lambda: self._reduced(self._full(d), s.pick(REDUCE))),
            (1, lambda: self._product(d)),
            (2, lambda: f"({self.f(d)} if {self.of('bool', d)} else {self.f(d)})"),
            (2 * rich, lambda: self._joined(d)),
            (1, lambda: self._reshaped(d)),
            (2, lambda: f"{self.of('tensors', d)}[{self._index()}]"),
            (1, lambda: f"total({self.of('tensors', d)}, {self.f(d)})"),
            (rich, lambda: f"tf.raw_ops.Cumsum(x={self.f(d)}, axis=0)"),
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

    def _nonzero(self) -> str:
        return self.scope.pick(["2", "3", "0.5", "-2", "x.shape[0]", "(k * k + 1)", "-1.5"])

    def _slice(self) -> str:
        step = self.scope.pick(["1", "2", "-1", "-2", "(1 if flag else -1)"])
        return f"[:{self.of('int', 1)}:{step}]"

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
        s, d, rich = self.scope, depth - 1, self.rich
        if depth <= 0:
            return self.name("i")
        return s.weighted([
            (3, lambda: self.name("i")),
            (3, lambda: f"({self.i(d)} {s.pick('+-*')} {self.i(d)})"),
            (2 * rich, lambda: f"({self.i(d)} {s.pick('&|^')} {self.i(d)})"),
            (2 * rich, lambda: f"({self.i(d)} {s.pick(['//', '%'])} {s.pick(['2', '-3'])})"),
            (2, lambda: f"({self.i(d)} {s.pick('+-*')} {self.of('int', d)})"),
            (1, lambda: f"({self.of('int', d)} {s.pick('+-*')} {self.i(d)})"),
            (rich, lambda: f"({self.i(d)} {s.pick('&|^')} {self.of('int', 0)})"),
            (2, lambda: f"({s.pick('-~'[: 1 + rich])}{self.i(d)})"),
            (1, lambda: f"tf.cast({self.b(d)}, tf.int32)"),
            (1, lambda: self._reduced(f"(n * {self.i(d)})", s.pick(REDUCE[:1] + REDUCE[2:]))),
            (1, lambda: f"tf.where({self.b(d)}, {self.i(d)}, {self.i(d)})"),
            (1, lambda: f"({self.i(d)} if {self.of('bool', d)} else {self.i(d)})"),
            (2 * rich, lambda: f"(n + {self.i(d)})" + s.pick(SAME + PART)),
            (1, lambda: f"tf.shape({self.f(d)})[{s.pick([0, -1])}]"),
            (1, lambda: f"{s.pick(['tf.abs', 'tf.sign', 'tf.negative'])}({self.i(d)})"),
        ])  # fmt: skip

    def b(self, depth: int) -> str:
        """A bool tensor."""
        s, d, rich = self.scope, depth - 1, self.rich
        if depth <= 0:
            return self.name("b")
        return s.weighted([
            (2, lambda: self.name("b")),
            (4, lambda: f"({self.f(d)} {s.pick(COMPARE[: 4 + 2 * rich])} {self.f(d)})"),
            (2, lambda: f"({self.f(d)} {s.pick(COMPARE[: 4 + 2 * rich])} {self.number(d)})"),
            (2, lambda: f"({self.i(d)} {s.pick(COMPARE[: 4 + 2 * rich])} {self.i(d)})"),
            (1, lambda: f"({self.i(d)} {s.pick(COMPARE[: 4 + 2 * rich])} {self.of('int', d)})"),
            (3, lambda: f"({self.b(d)} {s.pick('&|^'[: 2 + rich])} {self.b(d)})"),
            (2, lambda: f"(~{self.b(d)})"),
            (1, lambda: f"{s.pick(FF_TO_B)}({self.f(d)}, {self.f(d)})"),
            (1 * rich, lambda: f"(p & {self.b(d)})" + s.pick(SAME + PART)),
            (rich, lambda: self._reduced(f"(p | {self.b(d)})", s.pick(LOGICAL))),
        ])  # fmt: skip
