"""The catalogue of the mistakes that the language refuses: one entry each, with a stable code.

An entry says what the mistake is, why it is one, what to write instead, and shows a body that makes
it; the sentence about the case at hand is written where it is found. docs/errors.md is made of it.

Not for: errors of a call, which TensorFlow raises from the expansion. A leaf: it imports nothing.
"""

from composite.compiler.errors.catalogue import CATALOGUE
from composite.compiler.errors.mistake import Mistake, RefusedError

__all__ = ["CATALOGUE", "Mistake", "RefusedError"]
