"""TFR: the IR of a composite op's body, in MLIR.

The `tfr` dialect (dialect.py, tfr.irdl.mlir), building it (builder.py, cursor.py, recipe.py), its
passes (passes.py), its text (text.py) and the program made from it (serialize.py, digest.py).
Importing this imports MLIR: a process that only runs ops must not.

Not for: Python source (compiler.frontend), what a program means (the runtime's expansion).
"""

from composite.compiler.tfr.builder import Builder, Call
from composite.compiler.tfr.constants import UNDEFINED, NotConstantError
from composite.compiler.tfr.cursor import Place, Recording
from composite.compiler.tfr.digest import digest
from composite.compiler.tfr.fork import Fork
from composite.compiler.tfr.loop import Loop, for_each
from composite.compiler.tfr.passes import optimize
from composite.compiler.tfr.recipe import Recipe
from composite.compiler.tfr.serialize import serialize
from composite.compiler.tfr.state import calls, is_stateful
from composite.compiler.tfr.text import parse, print_module

__all__ = [
    "UNDEFINED",
    "Builder",
    "Call",
    "Fork",
    "Loop",
    "NotConstantError",
    "Place",
    "Recipe",
    "Recording",
    "calls",
    "digest",
    "for_each",
    "is_stateful",
    "optimize",
    "parse",
    "print_module",
    "serialize",
]
