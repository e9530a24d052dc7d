"""Mistakes in what is decorated, or called as a helper: C00x."""

from composite.compiler.errors.mistake import Mistake

NO_SOURCE = Mistake(
    "C001",
    "The source of a function cannot be found",
    cause="An op is compiled from its source text, and Python has no source text for this "
    "function.",
    fix="Define the function in a file or a notebook cell. For `exec`, register the text in "
    "`linecache`.",
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
    cause="The source text of a lambda is part of a line and cannot be separated from the rest of "
    "it.",
    fix="Write a `def` with a name. Inside a body, lambdas are allowed.",
    example="""\
example = Composite("Example", inputs=["x: float"], outputs=["y: float"])(
    lambda x: x + 1
)
""",
)

WRAPPED = Mistake(
    "C003",
    "A function that another decorator has wrapped",
    cause="Only the body is compiled, so whatever the other decorator adds would be lost.",
    fix="Put `@Composite` directly above the `def`, and call only helpers that are not wrapped.",
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
    cause="The text at the function's lines is not the text of the function that runs.",
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
    "`@Composite` on something that is not a function",
    cause="A composite op has a body, and only a Python function has one.",
    fix="Decorate a `def`. If the object is an op, call it in the body of that `def`.",
    example="""\
example = Composite("Example", inputs=["x: float"], outputs=["y: float"])("tanh")
""",
)
