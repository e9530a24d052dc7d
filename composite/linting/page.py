"""docs/lint.md, written from the table of remedies."""

from __future__ import annotations

import re
import textwrap

from composite.linting import remedies
from composite.linting.remedies import Remedy

_WIDTH = 100

_HEAD = """\
# What keeps an op from a kernel

<!-- Generated from composite/linting: pytest --update-golden tests/composite/linting -->

`composite lint ops.py`, or `composite.lint`, says for each op of a file, each dtype that its
declaration allows, forward and gradient, what keeps it from a kernel, in which line, and what to
write instead:

```text
ops.py:25:25: caller, forward
    op Bucketize is not in the kernel table
    instead: end the op in front of it and begin another one behind it: the
      bodies before and after it have kernels
```

The calls that it looks at are those that are stated beside an op, in every dtype of the
declaration. For an op without any, they are found as `composite build` does; `--shape` and `--attr`
state one call ([cli.md](cli.md)). The compiler is asked for each of them, once with dims that vary
and once with known sizes, up to the loops: no code is generated, and nothing is run or measured.
Whether a kernel is right and fast is found out when it is compiled. Of an op for which no call is
found, only ops that no kernel may hold are named.

A gradient is that of a traced step with known sizes. Ops with a gradient of their author's have
none that could be looked at.

The exit code is 0 when all calls have kernels, and their gradients. Warnings are about calls that
have one, and change the exit code with `--strict` alone:

- A dim that varies has no kernel, known sizes have: {known_sizes}.
- A float attribute: each value is another kernel. Make it an input, where it varies.
- An input that is always int64 or double, and a body that computes in 64 bits although no input has
  them: {narrow}.
- A backward that computes a matrix product, a convolution or a loop again: {keep}.

## What to write instead

`x` is a square matrix of float32, `n` its size, and `r` is `tf.range(n)`. With the first body of
each pair there is no kernel, with the second one there is, and both compute the same. Where the
list has nothing, {split}.
"""


def page() -> str:
    """The page."""
    head = _HEAD.format(
        known_sizes=remedies.KNOWN_SIZES,
        narrow=remedies.NARROW,
        keep=remedies.KEEP,
        split=remedies.SPLIT,
    )
    parts = [_filled(part) for part in head.split("\n\n")]
    return "\n\n".join([*parts, *map(_entry, remedies.ROWS)]) + "\n"


def body(example: str) -> str:
    """An example with what it reads, as the body of a function of `x`."""
    known = {"n": "n = x.shape[0]", "r": "r = tf.range(x.shape[0])"}
    used = [text for name, text in known.items() if re.search(rf"\b{name}\b", example)]
    return "\n".join([*used, example])


def _entry(row: Remedy) -> str:
    sentence = row.advice[0].upper() + row.advice[1:]
    code = "\n".join(["```python", row.before, "```", "", "```python", row.after, "```"])
    return f"{_filled(f'{sentence}.')}\n\n{code}"


def _filled(part: str) -> str:
    """A paragraph or a list in lines of one width; a block of code and a heading as they are."""
    if part.startswith(("```", "#", "<!--")):
        return part
    items = part.split("\n- ")
    return "\n".join(
        textwrap.fill(item, _WIDTH, subsequent_indent="  " if part.startswith("- ") else "")
        for item in [items[0], *(f"- {item}" for item in items[1:])]
    )
