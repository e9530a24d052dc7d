"""docs/errors.md, written from the catalogue.

Not for: making the mistakes; whoever writes the page says what Python prints for an example.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from composite.compiler.errors.catalogue import FAMILIES, entries
from composite.compiler.errors.mistake import Mistake

_DECLARATION = """\
@Composite(
    "Example",
    inputs=["x: T", "y: T"],
    attrs=["k: int"],
    derived_attrs=["T: {float, double}"],
    outputs=["z: T"],
)
def example(x, y, k):
"""

_HEAD = f"""\
# Errors

<!-- Generated from compiler/errors: pytest --update-golden tests/compiler/errors writes it. -->

What is wrong in the source of an op is a `CompositeSyntaxError` when the op is decorated: a
`SyntaxError` with file, line and column. It ends with a code, whose entry is here. One error shows
all that is wrong in the op: a statement with a mistake is left out, what reads the names that it
would have assigned is left out without a word, and the rest is looked at.

An example that is a body alone stands in

```python
{_DECLARATION}    ...
```

and an example that is more is a whole module. Both have `tf`, `np` and `Composite`.
"""


def module_of(mistake: Mistake) -> str:
    """Return the text of a module that makes a mistake."""
    if "Composite(" in mistake.example:
        return mistake.example
    return _DECLARATION + textwrap.indent(mistake.example, "    ")


def page(printed: Callable[[Mistake], str]) -> str:
    """Return the page; `printed` gives what Python prints for the example of an entry."""
    parts = [_HEAD]
    for title, family in FAMILIES.items():
        parts.append(f"## {title}\n")
        parts += [_entry(one, printed(one)) for one in entries(family)]
    return "\n".join(parts)


def _entry(mistake: Mistake, printed: str) -> str:
    return f"""\
### {mistake.code}: {mistake.title}

{_wrapped(mistake.cause)}

```python
{mistake.example}```

```text
{printed}```

{_wrapped(mistake.fix)}
"""


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)
