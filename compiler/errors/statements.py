"""Statements that a body cannot hold, and values returned that the op does not have: C02x, C03x."""

from composite.compiler.errors.mistake import Mistake

NO_CONTEXT = Mistake(
    "C020",
    "`try` and `with`",
    cause="A graph has nothing to catch an error in, and no context to enter.",
    fix="Check with `if` before the call; call the ops directly.",
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
    cause="A body is translated once and leaves nothing behind but the op.",
    fix="Import and define outside of the op; return what should be kept as an output.",
    example="""\
import math
return x * math.pi
""",
)

NOT_TRANSLATED = Mistake(
    "C022",
    "`match`, and other syntax that has no translation",
    cause="What the compiler does not know, it refuses.",
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
    cause="An op gives all of its outputs at once.",
    fix="Return the outputs as a tuple; write `for` and `def` without `async`.",
    example="""\
yield x
return y
""",
)

RAISED = Mistake(
    "C024",
    "A `raise` that cannot be put off until the call",
    cause="It happens when the op is called with what leads there: its type and message are all "
    "that is kept, and the message may hold what is known then, which no tensor's value is.",
    fix="Write `raise ValueError(f'... {k} ... {x.shape}')`.",
    example="""\
if k < 0:
    raise ValueError(x)
return x
""",
)

IN_PLACE = Mistake(
    "C025",
    "A value that is changed in place",
    cause="Tensors and lists in a body are values; whoever holds one would not see the change.",
    fix="Assign a new value to a name: `xs = xs + [y]`; for a tensor, call "
    "`tf.raw_ops.TensorScatterUpdate`.",
    example="""\
x[0] = y
return x
""",
)

NOT_APART = Mistake(
    "C026",
    "A value that cannot be taken apart into these names",
    cause="The number of the parts of a list, a shape or an op's outputs is known; a tensor's is "
    "not before the call.",
    fix="Write as many names as there are parts; for a tensor call `tf.unstack`.",
    example="""\
a, b = x
return a + b
""",
)

DECORATED = Mistake(
    "C027",
    "A decorator in a body",
    cause="A function in a body is translated where it is called; nothing is there to wrap it.",
    fix="Leave it out.",
    example="""\
@tf.function
def double(z):
    return z + z
return double(x)
""",
)

STARRED = Mistake(
    "C028",
    "`*` and `**` that spread a value",
    cause="Arguments are matched with their parameters before the values are known.",
    fix="Write the elements out.",
    example="""\
parts = [x, y]
return tf.maximum(*parts)
""",
)

RETURN_COUNT = Mistake(
    "C030",
    "A `return` of fewer or more values than the op has outputs",
    cause="Each path of a body gives all outputs of the op.",
    fix="Return one value for each output, in their order, or `raise`.",
    example="""\
if k > 0:
    return
return x
""",
)

RETURN_KIND = Mistake(
    "C031",
    "A returned value that its output cannot be",
    cause="An output is one tensor, or a list of tensors if it is declared as `N * T`.",
    fix="Return a tensor: `tf.shape(x)` for a shape, `tf.stack` for a list.",
    example="""\
return x.shape
""",
)
