"""All entries, in the order of their codes.

Not for: showing them (page.py).
"""

from __future__ import annotations

from composite.compiler.errors import calls, declarations, expressions, names, sources, statements
from composite.compiler.errors.mistake import Mistake

# The families, as headings of docs/errors.md, and where their entries are.
FAMILIES = {
    "The function": sources,
    "The declaration": declarations,
    "Statements": statements,
    "Names": names,
    "Expressions": expressions,
    "Calls": calls,
}


def entries(family: object) -> tuple[Mistake, ...]:
    """Return the entries of a family, in the order of their codes."""
    found = [one for one in vars(family).values() if isinstance(one, Mistake)]
    return tuple(sorted(found, key=lambda one: one.code))


CATALOGUE = tuple(one for family in FAMILIES.values() for one in entries(family))
