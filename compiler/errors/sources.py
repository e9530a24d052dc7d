"""Mistakes in what is decorated, or called as a helper: C00x."""

from composite.compiler.errors.mistake import Mistake

NO_SOURCE = Mistake(
    "C001",
    "The source of a function is not found",
    cause="An op is compiled from its text, and Python finds none for the function.",
    fix="Define it in a file or a notebook cell, or register the text of `exec` in `linecache`.",
    example="""\
exec("def helper(x): return x + 1")

@Composite("Example", inputs=["x: float"], outputs=["y: float"])
def example(x):
    return helper(x)
""",
)

NO_DEF = Mistake(
    "C002",
    "A lambda or coroutine instead of a `def`",
    cause="The text of a lambda is a part of a line, which cannot be told from its neighbours.",
    fix="Give it a `def` and a name. Inside of a body lambdas are fine.",
    example="""\
example = Composite("Example", inputs=["x: float"], outputs=["y: float"])(
    lambda x: x + 1
)
""",
)

WRAPPED = Mistake(
    "C003",
    "A function that another decorator has wrapped",
    cause="The body is what is compiled; what the other decorator adds would be lost.",
    fix="Put `@Composite` next to the `def`, and call helpers that are not wrapped.",
    example="""\
import functools

def twice(function):
    @functools.wraps(function)
    def call(x):
        return function(function(x))
    return call

@Composite("Example", inputs=["x: float"], outputs=["y: float"])
@twice
def example(x):
    return x + 1
""",
)

CHANGED = Mistake(
    "C004",
    "A file that has changed since it was imported",
    cause="The text at the function's lines is another one than the function that runs.",
    fix="Import the module again, or restart the process.",
    example="""\
def helper(x):
    return x + 1

helper.__name__ = "other"

@Composite("Example", inputs=["x: float"], outputs=["y: float"])
def example(x):
    return helper(x)
""",
)

NO_FUNCTION = Mistake(
    "C005",
    "Something else than a function is decorated",
    cause="A composite has a body, which only a function of Python has.",
    fix="Decorate a `def`; call the object in it, if it is an op.",
    example="""\
example = Composite("Example", inputs=["x: float"], outputs=["y: float"])("tanh")
""",
)
