"""Random calls of Python's functions of numbers and lists, and tuples."""

from __future__ import annotations

from tests.fuzz.choices import COMPARE, Choices


class Sequences(Choices):
    """Makes calls that give numbers and lists, tuples, and lists of lists."""

    def whole_call(self, depth: int) -> str:
        """A call that gives an int, or an item of what it gives."""
        s, d = self.scope, depth - 1
        least = s.pick(["min", "max"])
        return s.weighted([
            (2, lambda: f"{s.pick(['int', 'round'])}({self.of('float', d)})"),
            (1, lambda: f"int({self.of(s.pick(['int', 'bool']), d)})"),
            (1, lambda: f"round({self.of('int', d)}, {s.pick(['-1', '0', '2', 'None'])})"),
            (2, lambda: f"abs({self.of('int', d)})"),
            (3, lambda: f"{least}({self.of('int', d)}, {self.of('int', d)})"),
            (2, lambda: f"{least}({self.items(d)}, default={self.of('int', 0)})"),
            (1, lambda: f"{least}({self.items(d)})"),
            (3, lambda: f"sum({self.items(d)}{s.pick(['', ', k', ', start=2'])})"),
            (2, lambda: f"divmod({self.of('int', d)}, {s.pick(['2', '-3', 'k'])})[{s.pick('01')}]"),
            (1, lambda: f"pow({self.of('int', d)}, {s.pick(['2', '0', '3, 5', '2, -7'])})"),
            (1, lambda: f"sorted({self.items(d)})[0]"),
            (2, lambda: f"len({self.of('tuple', d)})"),
            (2, lambda: f"({self.of('tuple', d)} + ({self.of('int', 0)},))[{s.pick(['0', '-1'])}]"),
            (1, lambda: f"len({self.of('nested', d)}[0])"),
        ])  # fmt: skip

    def real_call(self, depth: int) -> str:
        """A call that gives a float."""
        s, d = self.scope, depth - 1
        least = s.pick(["min", "max"])
        return s.weighted([
            (3, lambda: f"float({self.of(s.pick(['int', 'bool', 'float']), d)})"),
            # A sum with 0.0 is not -0.0: see known.py.
            (2, lambda: f"(round({self.of('float', d)}, {s.pick(['0', '1', '-1'])}) + 0.0)"),
            (2, lambda: f"abs({self.of('float', d)})"),
            (3, lambda: f"{least}({self.of('float', d)}, {self.of('float', d)})"),
            (1, lambda: f"(divmod({self.of('float', d)}, 0.5)[{s.pick('01')}] + 0.0)"),
        ])  # fmt: skip

    def truth_call(self, depth: int) -> str:
        """A call or a comparison that gives a bool."""
        s, d = self.scope, depth - 1
        types = ["int", "float", "(int, str)", "list", "tuple", "(list, tuple)", "bool", "str"]
        kinds = ["int", "float", "bool", "str", "ints", "tuple"]
        some = s.pick(["any", "all"])
        return s.weighted([
            (2, lambda: f"{some}([{self.of('bool', d)}, {self.of('int', d)}])"),
            (1, lambda: f"{some}({self.items(d)})"),
            (2, lambda: f"isinstance({self.of(s.pick(kinds), d)}, {s.pick(types)})"),
            (2, lambda: f"({self.of('tuple', d)} {s.pick(COMPARE)} {self.of('tuple', d)})"),
            (2, lambda: f"({self.of('tuple', d)} {s.pick(['==', '!='])} {self.of('ints', d)})"),
            (1, lambda: f"({self.of('ints', d)} in {self.of('nested', d)})"),
            (1, lambda: f"({self.of('tuple', d)} in [{self.of('ints', d)}, (1, k)])"),
            (1, lambda: f"(range({self.of('int', 0)} % 4) == {self.of('ints', d)})"),
            (1, lambda: f"({s.pick(['x', 'y'])}.shape == {s.pick(['(4, 3)', '[4, 3]'])})"),
            (1, lambda: f"(tuple(x.shape) == {s.pick(['(4, 3)', '[4, 3]'])})"),
            (1, lambda: f"bool({self.of('f', d)}.shape)"),
        ])  # fmt: skip

    def list_call(self, depth: int) -> str:
        """A list of ints that a call gives, or that goes through an iterator."""
        s, d = self.scope, depth - 1
        a, b = s.fresh("v"), s.fresh("v")
        reverse = s.pick(["", ", reverse=True"])

        def zipped() -> str:
            items = f"zip({self.items(d)}, {self.items(d)})"
            if s.chance(0.5):
                items = f"enumerate({self.items(d)}{s.pick(['', ', k'])})"
            with s.block(**{a: "int", b: "int"}):
                return f"[{self.of('int', d)} for {a}, {b} in {items}]"

        return s.weighted([
            (2, lambda: f"sorted({self.items(d)}{reverse})"),
            (2, lambda: f"list({self.of('tuple', d)})"),
            (3, zipped),
            (1, lambda: f"list(divmod({self.of('int', d)}, 2))"),
            (1, lambda: f"{self.of('nested', d)}[{s.pick(['0', '-1'])}]"),
        ])  # fmt: skip

    def tuple(self, depth: int) -> str:
        """A tuple of ints."""
        s, d = self.scope, depth - 1
        if depth <= 0:
            names = s.of_kind("tuple")
            return s.pick(names) if names else "(1, k)"
        return s.weighted([
            (2, lambda: self.tuple(0)),
            (2, lambda: f"({self.of('int', d)}, {self.of('int', d)})"),
            (2, lambda: f"tuple({self.items(d)})"),
            (2, lambda: f"({self.tuple(d)} + {self.tuple(d)})"),
            (1, lambda: f"{self.tuple(d)}[{s.pick(['::-1', '1:', ':-1'])}]"),
            (1, lambda: f"({self.tuple(d)} * {s.pick(['2', '0'])})"),
            (1, lambda: f"({self.tuple(d)} if {self.of('bool', d)} else {self.tuple(d)})"),
        ])  # fmt: skip

    def nested(self, depth: int) -> str:
        """A list of lists of ints, which are named elsewhere as well."""
        s, d = self.scope, depth - 1
        names = s.of_kind("nested")
        if names and (depth <= 0 or s.chance(0.4)):
            return s.pick(names)
        return f"[{self.of('ints', d)}, {self.of('ints', 0)}]"

    def items(self, depth: int) -> str:
        """What a function that goes through ints takes."""
        s = self.scope
        return s.weighted([
            (4, lambda: self.of("ints", depth)),
            (2, lambda: self.of("tuple", depth)),
            (1, lambda: f"reversed({self.of(s.pick(['ints', 'tuple']), depth)})"),
            (1, lambda: f"range({self.of('int', 0)} % 5)"),
            (1, lambda: "x.shape"),
        ])  # fmt: skip
