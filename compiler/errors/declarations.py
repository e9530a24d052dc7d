"""Mistakes in the arguments of `@Composite`, and in a function that does not fit them: C01x."""

from composite.compiler.errors.mistake import Mistake

NO_OP_DEF = Mistake(
    "C010",
    "A declaration that TensorFlow does not accept",
    cause="The strings follow TensorFlow's OpDef grammar and are read by TensorFlow's own parser.",
    fix='Write `"x: T"`, `"xs: N * T"`, `"k: int >= 1 = 2"`, `"T: {float, half}"`.',
    example="""\
@Composite("Example", inputs=["x: single"], outputs=["y: float"])
def example(x):
    return x
""",
)

UNDECLARED = Mistake(
    "C011",
    "An op without inputs and outputs",
    cause="A declaration with only a name refers to an op of TensorFlow, and TensorFlow has no op "
    "of this name.",
    fix="Declare `inputs` and `outputs`, or correct the name.",
    example="""\
@Composite("Example")
def example(x):
    return x
""",
)

TWO_OPS = Mistake(
    "C012",
    "Two ops with the same name",
    cause="TensorFlow identifies ops by name, in all files of a process.",
    fix="Rename one of them. Running an edited definition again is not a mistake.",
    example="""\
@Composite("OneOfTwo", inputs=["x: float"], outputs=["y: float"])
def first(x):
    return x

@Composite("OneOfTwo", inputs=["x: float"], outputs=["y: float"])
def second(x):
    return -x
""",
)

NO_STRINGS = Mistake(
    "C013",
    "Arguments of `@Composite` that are not strings",
    cause="Each of `inputs`, `attrs`, `derived_attrs` and `outputs` is a list of strings.",
    fix='Write `inputs=["x: T"]`.',
    example="""\
@Composite("Example", inputs="x: float", outputs=["y: float"])
def example(x):
    return x
""",
)

NAME_TAKEN = Mistake(
    "C014",
    "A declared name that is already taken",
    cause="Inputs and attributes are arguments of one call, which also takes `name=`.",
    fix="Give each of them a name of its own.",
    example="""\
@Composite("Example", inputs=["name: float"], outputs=["y: float"])
def example(name):
    return name
""",
)

WRONG_LIST = Mistake(
    "C015",
    "An attribute in the wrong list",
    cause="`derived_attrs` lists the attributes that the inputs determine, `attrs` those that the "
    "caller passes.",
    fix="Move it to the other list.",
    example="""\
@Composite("Example", ["x: T"], attrs=["T: type"], derived_attrs=[], outputs=["y: T"])
def example(x):
    return x
""",
)

PARAMETERS = Mistake(
    "C016",
    "Parameters that differ from the declaration",
    cause="The parameters of the function are the declared inputs, followed by the attributes, "
    "with the same names and in the same order.",
    fix="Write the parameters that the message lists. Attributes that the inputs determine are "
    "not parameters.",
    example="""\
@Composite("Example", inputs=["x: float"], attrs=["k: int"], outputs=["y: float"])
def example(k, x):
    return x
""",
)

NOT_PLAIN = Mistake(
    "C017",
    "Parameters that are not plain",
    cause="The parameters are matched with the declaration by name, and `*args` and `**kwargs` "
    "have no declared names.",
    fix="Write each parameter out. For a list of tensors, declare one input: `xs: N * T`.",
    example="""\
@Composite("Example", inputs=["x: float"], outputs=["y: float"])
def example(*inputs):
    return inputs[0]
""",
)

OTHER_DEFAULT = Mistake(
    "C018",
    "A default that differs from the declaration",
    cause="The declaration defines the op's defaults; a different default in Python would "
    "contradict it.",
    fix='Remove it, or declare it: `attrs=["k: int = 2"]`. Inputs have no defaults.',
    example="""\
@Composite("Example", inputs=["x: float"], attrs=["k: int = 2"], outputs=["y: float"])
def example(x, k=3):
    return x
""",
)

NOT_COMPOSED = Mistake(
    "C019",
    "A TensorFlow op that cannot have a composition",
    cause="TensorFlow looks up some ops in graphs by name, and other ops have state.",
    fix="Write an op of your own, with `inputs` and `outputs`.",
    example="""\
@Composite("Identity")
def example(input):
    return input
""",
)
