"""Random expressions that are known when an op expands, and lists. See scope.py for the kinds."""

from __future__ import annotations

from tests.fuzz.choices import COMPARE
from tests.fuzz.sequences import Sequences


class Known(Sequences):
    """Makes numbers, strings and lists."""

    def dtype(self, _depth: int) -> str:
        """The dtype T."""
        return "d"

    def literal(self, _depth: int) -> str:
        """A number that is written out."""
        return self.scope.pick(["2", "0.5", "-1", "3", "1.5", "0"])

    def whole(self, depth: int) -> str:
        """A known int."""
        s, d = self.scope, depth - 1
        if depth <= 0:
            return s.pick([self.name("int"), str(s.random.randint(-3, 5))])
        return s.weighted([
            (3, lambda: self.name("int")),
            (2, lambda: str(s.random.randint(-3, 5))),
            (4, lambda: f"({self.whole(d)} {s.pick('+-*')} {self.whole(d)})"),
            (2, lambda: f"({self.whole(d)} {s.pick(['//', '%'])} {s.pick(['2', '-3', 'k'])})"),
            (1, lambda: f"({self.whole(d)} {s.pick(['//', '%'])} {self.whole(d)})"),
            (1, lambda: f"({self.whole(d)} ** {s.pick('0123')})"),
            (1, lambda: f"({self.whole(d)} {s.pick('&|^')} {self.whole(d)})"),
            (1, lambda: f"({self.whole(d)} {s.pick(['<<', '>>'])} {s.pick('0123')})"),
            (2, lambda: f"({s.pick('-~+')}{self.whole(d)})"),
            (2, lambda: self.of('f', d) + ".shape[" + s.pick(["0", "-1"]) + "]"),
            (1, lambda: f"{s.pick(['x', 'y', 'n'])}.shape.rank"),
            (1, lambda: f"len({self.of(s.pick(['ints', 'tensors', 'str']), d)})"),
            (1, lambda: f"len({self.of('f', d)}.shape)"),
            (1, lambda: f"({self.ints(d)} + [{self.whole(0)}])[{s.pick(['0', '-1', '0', 'k'])}]"),
            (2, lambda: f"({self.whole(d)} if {self.truth(d)} else {self.whole(d)})"),
            (1, lambda: f"({self.whole(d)} {s.pick(['and', 'or'])} {self.whole(d)})"),
            (1, lambda: f"({self.truth(d)} + {self.whole(d)})"),
            (1, lambda: f"add_up({self.ints(d)})"),
            (4, lambda: self.whole_call(d)),
        ])  # fmt: skip

    def real(self, depth: int) -> str:
        """A known float."""
        s, d = self.scope, depth - 1
        if depth <= 0:
            return s.pick([self.name("float"), s.pick(["0.5", "-1.5", "2.0", "0.0", "1e3"])])
        # Not -0.0: TensorFlow's cache of Python numbers takes it for a 0.0 that it met before.
        return s.weighted([
            (3, lambda: self.name("float")),
            (2, lambda: s.pick(["0.5", "-1.5", "2.0", "0.25", "-0.25"])),
            (3, lambda: f"({self.real(d)} {s.pick('+-*')} {self.number(d)})"),
            (2, lambda: f"({self.whole(d)} / {s.pick(['2', '4', '-8', self.whole(0)])})"),
            (1, lambda: f"({self.real(d)} {s.pick(['//', '%', '/'])} {s.pick(['0.5', 'r'])})"),
            (1, lambda: f"({self.real(d)} ** {s.pick('0123')})"),
            (1, lambda: f"(-{self.real(d)})"),
            (1, lambda: f"({self.real(d)} if {self.truth(d)} else {self.real(d)})"),
            (3, lambda: self.real_call(d)),
        ])  # fmt: skip

    def truth(self, depth: int) -> str:
        """A known bool."""
        s, d = self.scope, depth - 1
        if depth <= 0:
            return s.pick([self.name("bool"), "True", "False"])
        return s.weighted([
            (2, lambda: self.name("bool")),
            (4, lambda: f"({self.whole(d)} {s.pick(COMPARE)} {self.whole(d)})"),
            (2, lambda: f"({self.number(d)} {s.pick(COMPARE)} {self.number(d)})"),
            (2, lambda: f"({self.whole(d)} {s.pick(COMPARE)} {self.whole(d)} {s.pick(COMPARE)} "
                        f"{self.whole(d)})"),
            (2, lambda: f"(not {self.of(s.pick(['bool', 'int', 'ints', 'str']), d)})"),
            (2, lambda: f"({self.truth(d)} {s.pick(['and', 'or'])} {self.truth(d)})"),
            (1, lambda: f"({self.truth(d)} {s.pick('&|^')} {self.truth(d)})"),
            (1, lambda: f"({self.whole(d)} {s.pick(['in', 'not in'])} {self.ints(d)})"),
            (1, lambda: f"({self.text(d)} {s.pick(['==', '!=', 'in', '<'])} {self.text(d)})"),
            (1, lambda: f"({s.pick(['x', 'n', 'p'])}.dtype {s.pick(['==', '!='])} "
                        f"{s.pick(['tf.float32', 'tf.int32', 'd'])})"),
            (1, lambda: f"({self.ints(d)} {s.pick(['==', '!='])} {self.ints(d)})"),
            (1, lambda: f"(x.shape {s.pick(['==', '!='])} {s.pick(['y.shape', '[4, 3]'])})"),
            (1, lambda: f"bool({self.of(s.pick(['int', 'float', 'str']), d)})"),
            (3, lambda: self.truth_call(d)),
        ])  # fmt: skip

    def text(self, depth: int) -> str:
        """A known string."""
        s, d = self.scope, depth - 1
        if depth <= 0:
            return s.pick([self.name("str"), "'a'", "'bé'", "''"])
        return s.weighted([
            (3, lambda: self.name("str")),
            (1, lambda: s.pick(["'a'", "'abc'", "'é'"])),
            (2, lambda: f"({self.text(d)} + {self.text(d)})"),
            (1, lambda: f"({self.text(d)} * {s.pick(['2', '0', '-1', '3'])})"),
            (1, lambda: f"{self.text(d)}[{s.pick(['::-1', '1:', ':-1', '0:1', '-2:'])}]"),
            (1, lambda: f"({self.text(d)} if {self.truth(d)} else {self.text(d)})"),
        ])  # fmt: skip

    def ints(self, depth: int) -> str:
        """A list of ints."""
        s, d = self.scope, depth - 1
        if depth <= 0:
            return self.name("ints")
        v = s.fresh("v")

        def comprehension() -> str:
            source = s.pick([self.ints(d), f"range({self.whole(0)} % 5)", "x.shape"])
            with s.block(**{v: "int"}):
                test = f" if {self.truth(d)}" if s.chance(0.4) else ""
                return f"[{self.whole(d)} for {v} in {source}{test}]"

        return s.weighted([
            (3, lambda: self.name("ints")),
            (2, lambda: f"[{', '.join(self.whole(d) for _ in range(s.random.randint(1, 3)))}]"),
            (1, lambda: f"list(range({s.pick('01234')}))"),
            (1, lambda: f"list(range({s.pick('456')}, {self.whole(0)} % 4, -{s.pick('12')}))"),
            (2, comprehension),
            (1, lambda: f"({self.ints(d)} + {self.ints(d)})"),
            (1, lambda: f"{self.ints(d)}[{s.pick(['::-1', '1:', ':-1', ':2', '-2:', '::2'])}]"),
            (1, lambda: f"list(reversed({self.ints(d)}))"),
            (1, lambda: f"({self.ints(d)} * {s.pick(['2', '0'])})"),
            (1, lambda: f"list({self.of('f', d)}.shape)"),
            (1, lambda: f"({self.ints(d)} if {self.truth(d)} else {self.ints(d)})"),
            (3, lambda: self.list_call(d)),
        ])  # fmt: skip

    def tensors(self, depth: int) -> str:
        """A list of floating tensors."""
        s, d = self.scope, depth - 1
        if depth <= 0:
            return self.name("tensors")
        v, w = s.fresh("t"), s.fresh("j")

        def comprehension() -> str:
            with s.block(**{v: "f"}):
                test = f" if {self.truth(d)}" if s.chance(0.3) else ""
                return f"[{self.of('f', d)} for {v} in {self.name('tensors')}{test}]"

        def enumerated() -> str:
            with s.block(**{v: "f", w: "int"}):
                return f"[{self.of('f', d)} for {w}, {v} in enumerate({self.name('tensors')})]"

        return s.weighted([
            (3, lambda: self.name("tensors")),
            (2, lambda: f"[{', '.join(self.of('f', d) for _ in range(s.random.randint(1, 3)))}]"),
            (2, comprehension),
            (1, enumerated),
            (2, lambda: f"({self.tensors(d)} + [{self.of('f', d)}])"),
            (1, lambda: f"{self.tensors(d)}[{s.pick(['::-1', ':2', '-2:', ':-1'])}]"),
            (1, lambda: f"list(reversed({self.tensors(d)}))"),
        ])  # fmt: skip
