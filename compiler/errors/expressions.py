"""Expressions that have no meaning in a body: C05x."""

from composite.compiler.errors.mistake import Mistake

NO_CONTAINER = Mistake(
    "C050",
    "Dictionaries, sets and generators",
    cause="The values of a body are tensors, lists, shapes and constants.",
    fix="Write a tuple or a list; choose by a key with `if` and `elif`.",
    example="""\
return {0: x, 1: y}[k]
""",
)

NO_WALRUS = Mistake(
    "C051",
    "`:=`",
    cause="It assigns in the middle of an expression, which may not be evaluated.",
    fix="Assign on a line of its own.",
    example="""\
return (z := x + y) * z
""",
)

LIST_LENGTH = Mistake(
    "C052",
    "A tensor that decides how long a list is",
    cause="The elements of a tensor are known only when the op runs, and lists are part of the "
    "graph that it runs.",
    fix="Select elements of a tensor, with `tf.boolean_mask` or `tf.where`.",
    example="""\
return [z for z in (x, y) if tf.reduce_sum(z) > 0][0]
""",
)

IDENTITY = Mistake(
    "C053",
    "`is` with something else than None, True or False",
    cause="Values of a body have no identity; Python's answer would depend on its memory.",
    fix="Write `==`.",
    example="""\
if k is 3:
    return x
return y
""",
)

TENSOR_MEMBERSHIP = Mistake(
    "C054",
    "`in` on tensors",
    cause="Whether two tensors are equal is known only when the op runs.",
    fix="Compare, and reduce with `tf.reduce_any`.",
    example="""\
if x in (x, y):
    return x
return y
""",
)

OPERANDS = Mistake(
    "C055",
    "An operator that these operands do not have",
    cause="`@` multiplies two tensors, and `%` takes numbers and tensors.",
    fix="Write `*` for a number; put strings together with an f-string or `+`.",
    example="""\
return x @ 2
""",
)

NO_ATTRIBUTE = Mistake(
    "C056",
    "An attribute that a value of a body does not have",
    cause="A tensor has `.shape` and `.dtype`, a shape has `.rank`; nothing else is known of them.",
    fix="Write what the message says.",
    example="""\
return x.T
""",
)

NO_OUTPUT = Mistake(
    "C057",
    "An output that an op does not have",
    cause="The outputs of an op have the names of its OpDef.",
    fix="Take one of the names in the message.",
    example="""\
return tf.raw_ops.TopKV2(input=x, k=k).value
""",
)

SUBSCRIPT = Mistake(
    "C058",
    "A subscript that its value does not take",
    cause="A list takes one integer or one slice; a tensor integers, slices, `...` and None.",
    fix="Write the parts out; pick elements of a tensor by their numbers with `tf.gather`.",
    example="""\
return x[[0, 1]]
""",
)

FORMATTED = Mistake(
    "C059",
    "An f-string of what is not known yet",
    cause="A string is a constant of the op. Only the message of a `raise` is put together later.",
    fix="Put constants into it, or move it into the `raise`.",
    example="""\
return x * f"{k}"
""",
)
