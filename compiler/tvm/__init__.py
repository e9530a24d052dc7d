"""TF functions to kernels: lowering, schedules, code generation and linking with TVM.

``compile`` makes an object file of a FunctionDefLibrary for a shape class, ``link`` a library of
it. Not here: when to compile, caching, measuring, loading - that is who calls this. Importing the
package imports no TVM; the first ``compile`` does.
"""

from __future__ import annotations

from .build import Kernel, compile  # noqa: A004 - always used as backend.compile
from .errors import NotCovered
from .link import LinkError, link
from .target import Target

__all__ = ["Kernel", "LinkError", "NotCovered", "Target", "compile", "link"]
