"""The pipeline from a translated module to the one that is serialized.

Not for: what each pass does; see canonicalize.py, and dialect.py for which ops have effects.
"""

from __future__ import annotations

from typing import Any

from composite.compiler.tfr import dialect
from composite.compiler.tfr.bindings import passmanager
from composite.compiler.tfr.canonicalize import canonicalize

# MLIR's own passes: they merge common subexpressions, those of a branch also with values outside of
# it, and drop functions whose only calls were in branches that cannot be taken.
PIPELINE = "builtin.module(cse,symbol-dce)"


def optimize(module: Any) -> None:
    """Canonicalize a module, merge equal values and drop unused ones; in place, verified.

    Calls with state are neither merged nor dropped nor moved.
    """
    with dialect.lock, dialect.context():
        canonicalize(module)
        passes = passmanager.PassManager.parse(PIPELINE)
        passes.enable_verifier(False)  # after each pass of MLIR's own
        passes.run(module.operation)
        module.operation.verify()
