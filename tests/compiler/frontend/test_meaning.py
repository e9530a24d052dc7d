"""Programs mean what their Python says, as far as attributes go: branches, returns, short circuits.

The evaluator below knows attributes only and is the test's own; what programs mean with tensors is
tested on the runtime, which is the one that defines it.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from composite.compiler import tfr

OPERATORS: dict[str, Callable[..., Any]] = {
    "neg": operator.neg,
    "not": operator.not_,
    "add": operator.add,
    "iadd": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "in": lambda a, b: a in b,
    "not_in": lambda a, b: a not in b,
    "is": operator.is_,
    "is_not": operator.is_not,
}

ATTRS = [f'name: "{name}" type: "int"' for name in "abc"]


class Evaluator:
    def __init__(self, program: Any) -> None:
        self.functions = {f.signature.name: f for f in program.function}
        self.main = program.function[0]

    def run(self, **attributes: int) -> list[Any]:
        return self.function(self.main, dict(attributes))

    def function(self, function: Any, values: dict[str, Any]) -> list[Any]:
        for node in function.node_def:
            results = self.node(node, [values[name] for name in node.input])
            for index, result in enumerate(results):
                values[f"{node.name}:{index}" if index else node.name] = result
        return [values[function.ret[output.name]] for output in function.signature.output_arg]

    def node(self, node: Any, inputs: list[Any]) -> list[Any]:
        if node.op == "tfr.constant":
            kind = node.attr["value"].WhichOneof("value")
            return [None if kind is None else getattr(node.attr["value"], kind)]
        if node.op == "tfr.list":
            return [inputs]
        if node.op == "tfr.unpack":
            return list(inputs[0])
        if node.op == "tfr.item":
            return [inputs[0][inputs[1]]]
        if node.op in ("tfr.unary", "tfr.binary", "tfr.compare"):
            return [OPERATORS[node.attr["operator"].s.decode()](*inputs)]
        if node.op == "tfr.if":
            branch = node.attr["then" if inputs[0] else "else"].s.decode()
            return self.region(branch, inputs[1:], node.attr["size"].i)
        if node.op == "tfr.apply":
            return self.region(node.attr["region"].s.decode(), inputs, node.attr["size"].i)
        if node.op == "tfr.raise":
            raise ValueError(inputs)
        raise AssertionError(node.op)

    def region(self, name: str, inputs: list[Any], size: int) -> list[Any]:
        function = self.functions[name]
        names = [arg.name for arg in function.signature.input_arg]
        results = self.function(function, dict(zip(names, inputs, strict=True)))
        assert len(results) == size
        return results


NAMES = st.sampled_from("abcxyz")
OPERANDS = st.one_of(NAMES, st.integers(-2, 2).map(str))


def expressions() -> st.SearchStrategy[str]:
    return st.recursive(
        OPERANDS,
        lambda inner: st.one_of(
            st.builds("({} {} {})".format, inner, st.sampled_from("+-*"), inner),
            st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner),
            st.builds(
                "({} {} {} {} {})".format,
                inner,
                st.sampled_from(["<", "<=", "==", "!="]),
                inner,
                st.sampled_from([">", ">=", "=="]),
                inner,
            ),
            st.builds("({} if {} else {})".format, inner, inner, inner),
            st.builds("(not {})".format, inner),
            st.builds("({} in ({}, {}))".format, inner, inner, inner),
        ),
        max_leaves=6,
    )


def joined(parts: list[list[str]]) -> list[str]:
    return list(itertools.chain.from_iterable(parts))


def indent(lines: Iterator[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def statements(depth: int) -> st.SearchStrategy[list[str]]:
    simple = st.one_of(
        st.builds("{} = {}".format, NAMES, expressions()),
        st.builds("{} += {}".format, NAMES, expressions()),
        st.builds("{0}, {1} = {1}, {2}".format, NAMES, NAMES, expressions()),
        st.builds("return {}".format, expressions()),
    ).map(lambda line: [line])
    if depth == 0:
        return st.lists(simple, min_size=1, max_size=3).map(joined)

    def branching(test: str, body: list[str], other: list[str] | None) -> list[str]:
        lines = [f"if {test}:", *indent(iter(body))]
        return lines if other is None else [*lines, "else:", *indent(iter(other))]

    inner = statements(depth - 1)
    nested = st.builds(branching, expressions(), inner, st.one_of(st.none(), inner))
    return st.lists(st.one_of(simple, nested), min_size=1, max_size=4).map(joined)


@pytest.mark.slow
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    lines=statements(3),
    attributes=st.fixed_dictionaries({name: st.integers(-2, 2) for name in "abc"}),
)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_random_bodies(
    lines: list[str],
    attributes: dict[str, int],
    compile_body: Any,
    define: Callable[..., Any],
    op_def: Callable[..., Any],
) -> None:
    text = "def body(a, b, c):\n" + "".join(
        f"    {line}\n" for line in ["x = a", "y = b - c", "z = 1", *lines, "return x * y + z"]
    )
    body = define(text)
    declared = op_def("Test", [], ["y: float"], ATTRS)
    expected = body(**attributes)
    for optimize in (False, True):
        compiled = compile_body(body, declared, optimize=optimize)
        assert Evaluator(compiled.program).run(**attributes) == [expected], text
        # The text gives the same program, byte for byte.
        again = tfr.serialize(tfr.parse(tfr.print_module(compiled.module)), compiled.schema)
        assert again.SerializeToString(deterministic=True) == compiled.program.SerializeToString(
            deterministic=True
        )


def test_every_path_of_nested_returns(
    compile_body: Any, define: Callable[..., Any], op_def: Callable[..., Any]
) -> None:
    body = define(
        """
        def body(a, b, c):
            x = a
            if a > 0:
                if b > 0:
                    return x
                elif b < 0:
                    x = 10
                    if c == 1:
                        return x + 1
                    elif c == 2:
                        x += 1
                x += 100
            else:
                if c > 0:
                    if c == 2:
                        return -1
                    x = 7
            x += b
            if x > 5:
                if c == 0:
                    return x * 2
                x = -x
            return x + c
        """
    )
    compiled = compile_body(body, op_def("Test", [], ["y: float"], ATTRS))
    evaluator = Evaluator(compiled.program)
    for a in (-1, 1):
        for b in (-1, 0, 1):
            for c in (0, 1, 2):
                assert evaluator.run(a=a, b=b, c=c) == [body(a, b, c)]
    # Each rest is written once: ten paths, and a program that grows with the text only.
    assert len(compiled.program.function) < 25


def test_a_path_without_return_raises(
    compile_body: Any, define: Callable[..., Any], op_def: Callable[..., Any]
) -> None:
    body = define("def body(a, b, c):\n    if a:\n        return b\n")
    evaluator = Evaluator(compile_body(body, op_def("Test", [], ["y: float"], ATTRS)).program)
    assert evaluator.run(a=1, b=2, c=3) == [2]
    with pytest.raises(ValueError, match="Test: `body` returns nothing on this path"):
        evaluator.run(a=0, b=2, c=3)
