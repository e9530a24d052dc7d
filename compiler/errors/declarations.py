"""Mistakes in the arguments of `@Composite`, and in a function that does not fit them: C01x."""

from composite.compiler.errors.mistake import Mistake

NO_OP_DEF = Mistake(
    "C010",
    "A declaration that TensorFlow does not take",
    cause="The strings are TensorFlow's OpDef grammar, and its own parser reads them.",
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
    cause="A name alone is that of an op of TensorFlow, and there is none of this name.",
    fix="Declare `inputs` and `outputs`, or correct the name.",
    example="""\
@Composite("Example")
def example(x):
    return x
""",
)

TWO_OPS = Mistake(
    "C012",
    "Two ops of one name",
    cause="TensorFlow knows ops by their names, of all files of a process.",
    fix="Give one of them another name. Running an edited definition again is no mistake.",
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
    "A declared name that is taken",
    cause="Inputs and attributes are arguments of one call, which also takes `name=`.",
    fix="Give each another name.",
    example="""\
@Composite("Example", inputs=["name: float"], outputs=["y: float"])
def example(name):
    return name
""",
)

WRONG_LIST = Mistake(
    "C015",
    "An attribute in the wrong list",
    cause="`derived_attrs` are those that inputs determine, `attrs` those that a caller gives.",
    fix="Move it to the other list.",
    example="""\
@Composite("Example", ["x: T"], attrs=["T: type"], derived_attrs=[], outputs=["y: T"])
def example(x):
    return x
""",
)

PARAMETERS = Mistake(
    "C016",
    "Parameters that are not the declared ones",
    cause="A function takes its inputs and then its attributes, by their declared names, in order.",
    fix="Write the parameters that the message lists. What inputs determine is none of them.",
    example="""\
@Composite("Example", inputs=["x: float"], attrs=["k: int"], outputs=["y: float"])
def example(k, x):
    return x
""",
)

NOT_PLAIN = Mistake(
    "C017",
    "Parameters that are not plain",
    cause="A call is matched with its declaration by name; `*args` and `**kwargs` have none.",
    fix="Write the parameters out; take a list of tensors as one input, `xs: N * T`.",
    example="""\
@Composite("Example", inputs=["x: float"], outputs=["y: float"])
def example(*inputs):
    return inputs[0]
""",
)

OTHER_DEFAULT = Mistake(
    "C018",
    "A default that is not the declared one",
    cause="The op's default is the declaration's; another one in Python would say otherwise.",
    fix='Leave it out, or declare it: `attrs=["k: int = 2"]`. Inputs have no defaults.',
    example="""\
@Composite("Example", inputs=["x: float"], attrs=["k: int = 2"], outputs=["y: float"])
def example(x, k=3):
    return x
""",
)

NOT_COMPOSED = Mistake(
    "C019",
    "An op of TensorFlow that cannot have a composition",
    cause="TensorFlow finds some ops in graphs by their names, and others keep state.",
    fix="Write an op of your own, with `inputs` and `outputs`.",
    example="""\
@Composite("Identity")
def example(input):
    return input
""",
)
