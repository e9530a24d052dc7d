"""Names that have no value, or one that an op cannot hold: C04x."""

from composite.compiler.errors.mistake import Mistake

NOT_DEFINED = Mistake(
    "C040",
    "A name that is not defined",
    cause="The op is compiled when it is decorated, so names that are defined later in the file "
    "do not exist yet.",
    fix="Define it above the op.",
    example="""\
return x * later
""",
)

NOT_ASSIGNED = Mistake(
    "C041",
    "A name that is read before it is assigned",
    cause="The function assigns this name, so the name is local and does not refer to the "
    "module's.",
    fix="Assign it first.",
    example="""\
z = z + x
return z
""",
)

PARTLY_ASSIGNED = Mistake(
    "C042",
    "A name that only some paths assign",
    cause="If the branch is not taken, or the loop has no iteration, the name has no value.",
    fix="Assign it on the other path too, or before.",
    example="""\
if k > 0:
    z = x
return z
""",
)

TAKEN = Mistake(
    "C043",
    "A captured name that is assigned again",
    cause="A function in a body captures the values that names have where it is defined. In "
    "Python it would see the new value.",
    fix="Assign to another name, or make the name a parameter of the function.",
    example="""\
scale = x
def scaled(z):
    return z * scale
scale = y
return scaled(x)
""",
)

NO_MEMBER = Mistake(
    "C044",
    "A member that does not exist",
    cause="The members of modules and classes are read when the op is compiled. The members of "
    "other objects may change, so they are not read.",
    fix="Check the member's name. For a member of another object, assign its value to a name "
    "above the op.",
    example="""\
return tf.nn.rellu(x)
""",
)

NO_CONSTANT = Mistake(
    "C045",
    "A value that cannot be a constant of an op",
    cause="A constant is None, a bool, a 64-bit int, a float, a str, a dtype, a NumPy array, or a "
    "tuple of these.",
    fix="Turn a list into a tuple. Turn a tensor into an input of the op, or into a NumPy array.",
    example="""\
return x * 2j
""",
)

FUNCTION_VALUE = Mistake(
    "C046",
    "A function where a value is needed",
    cause="Functions are translated where they are called, so they do not exist when the op runs.",
    fix="Call it. If an `if` chooses between functions, call one in each branch.",
    example="""\
return x * tf.nn.relu
""",
)

ENDLESS = Mistake(
    "C047",
    "A recursion that does not end",
    cause="A call is replaced by the function's body, and here this never ends.",
    fix="Write a loop, or end the recursion with an `if` on constants.",
    example="""\
return example(x, y, k)
""",
)

TOO_MANY_CALLS = Mistake(
    "C048",
    "More calls than one op may contain",
    cause="Each call is replaced by the function's body, so thousands of calls become one huge op.",
    fix="Write a loop, or make the larger helpers composite ops: a call of a composite op is one "
    "node.",
    example="""\
def a(z): return z + z
def b(z): return a(a(a(a(a(a(a(a(z))))))))
def c(z): return b(b(b(b(b(b(b(b(z))))))))
def d(z): return c(c(c(c(c(c(c(c(z))))))))
return d(d(d(d(d(d(d(d(d(x)))))))))
""",
)

OBJECT_VALUE = Mistake(
    "C049",
    "A tf.TensorArray where a value is needed",
    cause="A tf.TensorArray is not a tensor. In a graph it is a handle that only its methods can "
    "use.",
    fix="Call `.stack()` for a tensor of all elements, or `.read(i)` for one element. A name must "
    "be a tf.TensorArray on all paths and in all iterations, or on none.",
    example="""\
return tf.TensorArray(tf.float32, 2) + x
""",
)
