"""Calls of what is no op, and calls that do not fit: C07x."""

from composite.compiler.errors.mistake import Mistake

NOT_CALLABLE = Mistake(
    "C070",
    "A call of something that is not a function",
    cause="The called value is a tensor, a number or another object.",
    fix="Call an op, a composite op or a function by its name.",
    example="""\
return x(y)
""",
)

NO_TRANSLATION = Mistake(
    "C071",
    "A function that is not supported",
    cause="It is not an op, not a function of yours, and not one of the TensorFlow functions that "
    "docs/language.md lists. It is Python code of another package, which cannot be compiled.",
    fix="Call the op that the message names, or write in the body what the function does.",
    example="""\
return np.tanh(x)
""",
)

ARGUMENTS = Mistake(
    "C072",
    "Arguments that do not match the parameters",
    cause="There are too many arguments, or one is unknown, is given twice, is missing, or "
    "follows from the inputs.",
    fix="Write the arguments that the message lists. Raw ops take their arguments by name.",
    example="""\
return tf.raw_ops.Relu(feature=x)
""",
)

NOT_NONE = Mistake(
    "C073",
    "None for an argument that needs a value",
    cause="The op is not defined without it.",
    fix="Pass a value. If the attribute has a default, leave it out.",
    example="""\
return tf.raw_ops.Relu(features=None)
""",
)

TENSOR_ATTRIBUTE = Mistake(
    "C074",
    "A tensor for an attribute",
    cause="Attributes are part of the graph, while tensors are computed when the graph runs.",
    fix="Pass a constant, or an attribute of the composite op.",
    example="""\
return tf.raw_ops.MatMul(a=x, b=y, transpose_a=x)
""",
)

ATTRIBUTE_VALUE = Mistake(
    "C075",
    "A value that an attribute does not accept",
    cause="The op's declaration requires another type, one of certain values, or a larger number.",
    fix="Pass a value that the message allows.",
    example="""\
return tf.raw_ops.MatMul(a=x, b=y, transpose_a=1)
""",
)

NODE_NAME = Mistake(
    "C076",
    "A node's name that is not a string",
    cause="A node has a name that is written out, or that an f-string makes of what is known when "
    "the op is expanded.",
    fix="Pass a string or an f-string, or leave `name` out.",
    example="""\
return tf.nn.relu(x, name=k)
""",
)

RANDOM_STATE = Mistake(
    "C077",
    "Random numbers with a state of their own",
    cause="The gradient computes the body again, and would draw different numbers.",
    fix="Call a stateless op, with a seed that is an input of the composite op.",
    example="""\
return x + tf.random.normal(x.shape)
""",
)

BUILTIN_CALL = Mistake(
    "C078",
    "`len`, `range`, `isinstance` or a similar call that is not supported here",
    cause="These functions work on what is known when the op is expanded: lists, shapes and "
    "attributes.",
    fix="For the length of a tensor, write `x.shape[0]`.",
    example="""\
return x * len(y)
""",
)

ONE_PASS = Mistake(
    "C079",
    "An iterator that is used as a value",
    cause="`enumerate`, `zip` and `reversed` give iterators, which one pass uses up: they have no "
    "length and no elements, and a second loop over one has no iterations.",
    fix="Use it where it is made, or give it a name that is read once. Otherwise write "
    "`list(zip(...))`.",
    example="""\
pairs = zip([x, y], [1, 2])
return x * len(pairs)
""",
)
