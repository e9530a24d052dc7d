"""Statements that a body cannot hold, and values returned that the op does not have: C02x, C03x."""

from composite.compiler.errors.mistake import Mistake

NO_CONTEXT = Mistake(
    "C020",
    "`try` and `with`",
    cause="A graph cannot catch errors, and has no contexts to enter.",
    fix="Check with `if` before the call, and call the ops directly.",
    example="""\
try:
    z = x / y
except ZeroDivisionError:
    z = x
return z
""",
)

NO_DEFINITION = Mistake(
    "C021",
    "`import`, `class`, `global`, `nonlocal`, `del`",
    cause="A body is translated once, and produces nothing but the op.",
    fix="Import and define outside the op. Return what you want to keep as an output.",
    example="""\
import math
return x * math.pi
""",
)

NOT_TRANSLATED = Mistake(
    "C022",
    "`match`, and other syntax that is not supported",
    cause="The compiler refuses all syntax that it has no translation for.",
    fix="Write `if` and `elif`.",
    example="""\
match k:
    case 1:
        return x
return y
""",
)

NO_COROUTINE = Mistake(
    "C023",
    "Generators and coroutines",
    cause="An op returns all of its outputs at once.",
    fix="Return the outputs as a tuple; write `for` and `def` without `async`.",
    example="""\
yield x
return y
""",
)

RAISED = Mistake(
    "C024",
    "A `raise` that cannot be deferred to the call",
    cause="The error is raised when a call leads to it. Only its type and its message are kept. "
    "The message may contain what is known at that time, which excludes the values of tensors.",
    fix="Write `raise ValueError(f'... {k} ... {x.shape}')`.",
    example="""\
if k < 0:
    raise ValueError(x)
return x
""",
)

IN_PLACE = Mistake(
    "C025",
    "A value that is modified in place",
    cause="Tensors and lists in a body are immutable values, so other names for the same value "
    "would not see the change.",
    fix="Assign a new value to a name: `xs = xs + [y]`; for a tensor, call "
    "`tf.raw_ops.TensorScatterUpdate`.",
    example="""\
x[0] = y
return x
""",
)

NOT_APART = Mistake(
    "C026",
    "A value that cannot be unpacked into these names",
    cause="The number of elements is known for a list, a shape, and an op's outputs, but for a "
    "tensor only when the op is called.",
    fix="Write as many names as there are elements. For a tensor, call `tf.unstack`.",
    example="""\
a, b = x
return a + b
""",
)

DECORATED = Mistake(
    "C027",
    "A decorator in a body",
    cause="A function in a body is translated where it is called, so there is nothing for a "
    "decorator to wrap.",
    fix="Remove it.",
    example="""\
@tf.function
def double(z):
    return z + z
return double(x)
""",
)

STARRED = Mistake(
    "C028",
    "`*` and `**` that unpack a value",
    cause="Arguments are matched with parameters before their values are known.",
    fix="Write the elements out.",
    example="""\
parts = [x, y]
return tf.maximum(*parts)
""",
)

RETURN_COUNT = Mistake(
    "C030",
    "A `return` with fewer or more values than the op has outputs",
    cause="Each path through a body returns all outputs of the op.",
    fix="Return one value for each output, in their order, or `raise`.",
    example="""\
if k > 0:
    return
return x
""",
)

RETURN_KIND = Mistake(
    "C031",
    "A returned value that cannot be an output",
    cause="An output is one tensor, or a list of tensors if it is declared as `N * T`.",
    fix="Return a tensor: `tf.shape(x)` for a shape, `tf.stack` for a list.",
    example="""\
return x.shape
""",
)
