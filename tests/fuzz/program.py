"""A random program: the text of a module with one op, and the op that it defines."""

from __future__ import annotations

import ast
import dataclasses
import linecache
from collections.abc import Callable, Mapping
from typing import Any

from tests.fuzz.expressions import Expressions
from tests.fuzz.scope import ATTRS, INPUTS, Options, Scope
from tests.fuzz.statements import Statements

_HEAD = """import tensorflow as tf

from composite import Composite


def total(values, start):
    for value in values:
        start = start + value
    return start


def add_up(numbers):
    result = 0
    for number in numbers:
        result += number
    return result
"""

_OP = """

@Composite(
    "{name}",
    inputs=["xs: N * T", "x: T", "y: T", "n: int32", "p: bool"],
    attrs=["k: int", "r: float", "flag: bool", "s: string", "ks: list(int)", "d: type"],
    derived_attrs=["N: int >= 1", "T: {{float, double}}"],
    outputs=[{outputs}],
)
def body({parameters}):
"""

_DTYPES = {"f": "T", "i": "int32", "b": "bool"}


@dataclasses.dataclass(frozen=True)
class Program:
    """A program. `text` has `NAME` where the op's name goes, so that it can be defined again."""

    seed: int
    text: str

    def file(self, version: int = 0) -> str:
        """The name under which a version of the text is compiled."""
        return f"<fuzz {self.seed} {version}>"

    def define(self, version: int = 0) -> Any:
        """Compiles the text; returns the op. Raises what decoration raises."""
        name = f"Fuzz{self.seed}V{version}"
        text = self.text.replace("NAME", name)
        file = self.file(version)
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        namespace: dict[str, Any] = {"__name__": f"fuzz_{self.seed}_{version}"}
        exec(compile(text, file, "exec"), namespace)
        return namespace["body"]

    def as_python(
        self, transformer: ast.NodeTransformer, file: str, names: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """The body as a plain function, its module changed by `transformer`, which may use `names`.

        Lines keep their numbers; `file` is the name under which tracebacks have them.
        """
        tree = ast.parse(self.text)
        # The op is left out: only its function is wanted.
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                node.decorator_list = []
        tree = ast.fix_missing_locations(transformer.visit(tree))
        namespace = dict(names)
        exec(compile(tree, file, "exec"), namespace)
        return namespace["body"]


def generate(seed: int, options: Options) -> Program:
    """The program of a seed."""
    scope = Scope(seed, options)
    expressions = Expressions(scope)
    statements = Statements(scope, expressions)
    for _ in range(scope.pick([0, 0, 1, 2])):
        _helper(scope, expressions, statements)
    scope.results = scope.pick([["f"], ["f"], ["f"], ["f", "i"], ["f", "b", "f"]])
    outputs = ", ".join(f'"o{n}: {_DTYPES[kind]}"' for n, kind in enumerate(scope.results))
    lines = [*statements.block(options.size, 2), statements.returned(2)]
    helpers = "".join("\n\n" + "\n".join(lines) + "\n" for lines in scope.functions)
    parameters = ", ".join([*INPUTS, *ATTRS])
    op = _OP.format(name="NAME", outputs=outputs, parameters=parameters)
    body = "".join(f"    {line}\n" for line in lines)
    return Program(seed, f"{_HEAD}{helpers}{op}{body}")


def _helper(scope: Scope, expressions: Expressions, statements: Statements) -> None:
    """Adds a function of the module; it is given all that the op is given."""
    name = scope.fresh("helper")
    kinds = [scope.pick(["f", "f", "int", "bool"]) for _ in range(scope.pick([0, 1, 2]))]
    parameters = {scope.fresh("u"): kind for kind in kinds} | INPUTS | ATTRS
    scope.results = ["f"]
    helpers = dict(scope.helpers)
    with scope.block(**parameters):
        lines = [*statements.block(3, 1), statements.returned(2)]
    scope.helpers = helpers | {name: list(parameters.values())}
    scope.functions.append([f"def {name}({', '.join(parameters)}):", *(f"    {x}" for x in lines)])
