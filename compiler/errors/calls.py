"""Calls of what is no op, and calls that do not fit: C07x."""

from composite.compiler.errors.mistake import Mistake

NOT_CALLABLE = Mistake(
    "C070",
    "A call of what is no function",
    cause="A tensor, a number or an object is called.",
    fix="Call an op, a composite or a function by its name.",
    example="""\
return x(y)
""",
)

NO_TRANSLATION = Mistake(
    "C071",
    "A function that has no translation",
    cause="It is Python of another package and may do anything: it is no op, no function of yours, "
    "and none of the functions of TensorFlow that docs/language.md lists.",
    fix="Call the op that the message names, or write what the function does.",
    example="""\
return np.tanh(x)
""",
)

ARGUMENTS = Mistake(
    "C072",
    "Arguments that are not the parameters of what is called",
    cause="One is too many, unknown, given twice or missing, or it follows from the inputs.",
    fix="Write what the message lists. Raw ops take their arguments by name.",
    example="""\
return tf.raw_ops.Relu(feature=x)
""",
)

NOT_NONE = Mistake(
    "C073",
    "None for an argument that needs a value",
    cause="The op has no meaning without it.",
    fix="Give a value; leave an attribute out that has a default.",
    example="""\
return tf.raw_ops.Relu(features=None)
""",
)

TENSOR_ATTRIBUTE = Mistake(
    "C074",
    "A tensor for an attribute",
    cause="Attributes are part of the graph, tensors are what runs through it.",
    fix="Give a constant, or an attribute of the composite.",
    example="""\
return tf.raw_ops.MatMul(a=x, b=y, transpose_a=x)
""",
)

ATTRIBUTE_VALUE = Mistake(
    "C075",
    "A value that an attribute does not take",
    cause="The op's declaration allows another type, other values, or a larger number.",
    fix="Give one that the message allows.",
    example="""\
return tf.raw_ops.MatMul(a=x, b=y, transpose_a=1)
""",
)

NODE_NAME = Mistake(
    "C076",
    "A node's name that is not written out",
    cause="Names are part of the program, which is the same for all calls.",
    fix="Give a string, or leave `name` out.",
    example="""\
return tf.nn.relu(x, name=k)
""",
)

RANDOM_STATE = Mistake(
    "C077",
    "Random numbers with a state of their own",
    cause="The gradient computes the body again, and would draw other numbers.",
    fix="Call a stateless op, with a seed that is an input of the composite.",
    example="""\
return x + tf.random.normal(x.shape)
""",
)

BUILTIN_CALL = Mistake(
    "C078",
    "A call of `len`, `range`, `isinstance` or the like that has no meaning here",
    cause="They count what is known when the op expands: lists, shapes and attributes.",
    fix="Write `x.shape[0]` for the length of a tensor.",
    example="""\
return x * len(y)
""",
)
