"""Names that have no value, or one that an op cannot hold: C04x."""

from composite.compiler.errors.mistake import Mistake

NOT_DEFINED = Mistake(
    "C040",
    "A name that is not defined",
    cause="The op is compiled where it is decorated; what comes later in the file is not there.",
    fix="Define it above the op.",
    example="""\
return x * later
""",
)

NOT_ASSIGNED = Mistake(
    "C041",
    "A name that is read before it is assigned",
    cause="It is assigned in this function, so it is not the module's.",
    fix="Assign it first.",
    example="""\
z = z + x
return z
""",
)

PARTLY_ASSIGNED = Mistake(
    "C042",
    "A name that only some paths assign",
    cause="A branch that is not taken, or a loop without a trip, leaves it without a value.",
    fix="Assign it on the other path too, or before.",
    example="""\
if k > 0:
    z = x
return z
""",
)

TAKEN = Mistake(
    "C043",
    "A name that a function has taken, and that is assigned again",
    cause="A function in a body takes the value that a name has where it stands; in Python it "
    "would see the new one.",
    fix="Assign to another name, or make it a parameter of the function.",
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
    "A member that is not there",
    cause="Members of modules and classes are read when the op is compiled; those of other objects "
    "may change.",
    fix="Look for its name; give an object's value a name of its own above the op.",
    example="""\
return tf.nn.rellu(x)
""",
)

NO_CONSTANT = Mistake(
    "C045",
    "A value that cannot be a constant of an op",
    cause="A constant is None, a bool, an int of 64 bits, a float, a str, a dtype, a NumPy array, "
    "or a tuple of these.",
    fix="Make a list a tuple, a tensor an input of the op or a NumPy array.",
    example="""\
return x * 2j
""",
)

FUNCTION_VALUE = Mistake(
    "C046",
    "A function where a value is needed",
    cause="Functions are gone when the op runs: each is translated where it is called.",
    fix="Call it; where an `if` chooses one, call it in each branch.",
    example="""\
return x * tf.nn.relu
""",
)

ENDLESS = Mistake(
    "C047",
    "A function that calls itself without end",
    cause="A call is replaced by the function's body, and this never comes to an end.",
    fix="Write a loop, or have an `if` on constants end the recursion.",
    example="""\
return example(x, y, k)
""",
)

TOO_MANY_CALLS = Mistake(
    "C048",
    "More calls than one op may hold",
    cause="Each call is replaced by the function's body; thousands of them are one huge op.",
    fix="Write a loop, or make the larger helpers composites: a call of one is one node.",
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
    cause="It is no tensor: a graph has only a handle for it, and what its methods give.",
    fix="Call `.stack()` for a tensor of all elements, `.read(i)` for one. On all paths and in "
    "all trips a name is a tf.TensorArray or none is.",
    example="""\
return tf.TensorArray(tf.float32, 2) + x
""",
)
