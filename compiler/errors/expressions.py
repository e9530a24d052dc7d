"""Expressions that have no meaning in a body: C05x."""

from composite.compiler.errors.mistake import Mistake

NO_CONTAINER = Mistake(
    "C050",
    "Dictionaries, sets and generators",
    cause="The values in a body are tensors, lists, shapes and constants.",
    fix="Write a tuple or a list. To choose by a key, use `if` and `elif`.",
    example="""\
return {0: x, 1: y}[k]
""",
)

NO_WALRUS = Mistake(
    "C051",
    "`:=`",
    cause="It assigns inside an expression that may not be evaluated.",
    fix="Write the assignment on a line of its own.",
    example="""\
return (z := x + y) * z
""",
)

LIST_LENGTH = Mistake(
    "C052",
    "A list whose length depends on a tensor",
    cause="The elements of a tensor are known only when the op runs, but a list has to be known "
    "when the graph is built.",
    fix="Select elements of the tensor with `tf.boolean_mask` or `tf.where`.",
    example="""\
return [z for z in (x, y) if tf.reduce_sum(z) > 0][0]
""",
)

IDENTITY = Mistake(
    "C053",
    "`is` with something other than None, True or False",
    cause="Values in a body have no identity; Python's result would depend on its memory "
    "management.",
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
    "An operator that these operands do not support",
    cause="`@` multiplies two tensors, and `%=` takes numbers and tensors.",
    fix="For numbers, write `*`. To build strings, use an f-string, `%` or `+`.",
    example="""\
return x @ 2
""",
)

NO_ATTRIBUTE = Mistake(
    "C056",
    "An attribute that a value in a body does not have",
    cause="A tensor has `.shape` and `.dtype`, and a shape has `.rank`. There are no other "
    "attributes.",
    fix="Write what the message says.",
    example="""\
return x.T
""",
)

NO_OUTPUT = Mistake(
    "C057",
    "An output that an op does not have",
    cause="The outputs of an op have the names that its OpDef declares.",
    fix="Use one of the names in the message.",
    example="""\
return tf.raw_ops.TopKV2(input=x, k=k).value
""",
)

SUBSCRIPT = Mistake(
    "C058",
    "A subscript that the value does not support",
    cause="A list takes one integer or one slice. A tensor takes integers, slices, `...` and None.",
    fix="Write the parts out. To select elements of a tensor by index, use `tf.gather`.",
    example="""\
return x[[0, 1]]
""",
)

FORMATTED = Mistake(
    "C059",
    "Text of what is not known yet, or in a format that is not supported",
    cause="Text is made when the op is expanded. Attributes, dims, and the variables of loops over "
    "them are known then; the values of tensors are not. The template of `%` and of `.format()` is "
    "written out.",
    fix="Format what is known. For a tensor, call `tf.strings.format`, which is an op.",
    example="""\
return x * len(f"{x}")
""",
)
