"""TF functions to kernels: lowering, schedules, code generation and linking with TVM.

``compile`` makes an object file of a FunctionDefLibrary for a shape class, ``link`` a library of
it; ``write`` stops before code is generated, and tells what there is to choose. Not here: when to
compile, caching, measuring, loading - that is who calls this. Importing the package imports no
TVM; the first ``compile`` does.
"""

from __future__ import annotations

from composite.compiler.tvm.build import Kernel, Written, compile, write  # noqa: A004 - always used as backend.compile
from composite.compiler.tvm.choices import Chosen, Knob, Value
from composite.compiler.tvm.errors import NotCovered
from composite.compiler.tvm.link import LinkError, link, linked
from composite.compiler.tvm.target import Target

__all__ = [
    "Chosen",
    "Kernel",
    "Knob",
    "LinkError",
    "NotCovered",
    "Target",
    "Value",
    "Written",
    "compile",
    "link",
    "linked",
    "write",
]
