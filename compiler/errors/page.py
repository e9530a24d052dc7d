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

A mistake in the source of an op raises a `CompositeSyntaxError` when the op is decorated. It is a
`SyntaxError` with file, line and column, and ends with a code. This page has an entry for each
code. One error lists all mistakes in the op. The compiler skips a statement with a mistake, skips
silently what depends on the names that this statement would have assigned, and checks the rest.

Most examples are only a body. They are the body of

```python
{_DECLARATION}    ...
```

The other examples are a whole module. `tf`, `np` and `Composite` are imported in both.
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
