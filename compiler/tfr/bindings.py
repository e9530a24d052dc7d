"""The one import of MLIR's Python bindings.

Everything else in the project that builds or reads MLIR takes `ir`, `irdl`, `rewrite` and
`passmanager` from here. A real `mlir` package is preferred; the same upstream bindings ship in the
torch-mlir wheel (which needs neither torch nor TensorFlow).

Not for: the dialect (dialect.py), or anything a program needs that only runs ops.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import Any

PACKAGES = ("mlir", "torch_mlir")


@contextlib.contextmanager
def _own_llvm() -> Iterator[None]:
    """Binds the bindings to the LLVM they ship with.

    TensorFlow exports LLVM symbols from a library that is loaded RTLD_GLOBAL. If it came first,
    MLIR's shared library resolves its LLVM against TensorFlow's, registers the command line
    options a second time, and LLVM aborts the process ("Option 'print-inst-addrs' registered more
    than once"). RTLD_DEEPBIND makes a library look into itself first.
    """
    if "tensorflow" not in sys.modules:
        yield
        return
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_DEEPBIND)
    try:
        yield
    finally:
        sys.setdlopenflags(flags)


def _package() -> str:
    for name in PACKAGES:
        # An empty placeholder named `mlir` exists on the package index: look for its `ir`.
        if importlib.util.find_spec(name) and importlib.util.find_spec(f"{name}.ir"):
            return name
    raise ImportError(
        "compiling a composite needs MLIR's Python bindings: pip install 'tf-composite[compiler]' "
        "(running a library that was built ahead of time does not)"
    )


with _own_llvm():
    PACKAGE = _package()
    ir: Any = importlib.import_module(f"{PACKAGE}.ir")
    rewrite: Any = importlib.import_module(f"{PACKAGE}.rewrite")
    passmanager: Any = importlib.import_module(f"{PACKAGE}.passmanager")
    irdl: Any = importlib.import_module(f"{PACKAGE}.dialects.irdl")
    # Importing a dialect's module registers the classes of its ops (func.FuncOp, scf.IfOp).
    func: Any = importlib.import_module(f"{PACKAGE}.dialects.func")
    scf: Any = importlib.import_module(f"{PACKAGE}.dialects.scf")

# For each op that it hands out, MLIR looks for a Python module of its dialect under these prefixes,
# and never learns that there is none. The package `tfr` is found as the module of dialect `tfr`.
importlib.import_module(f"{PACKAGE}._mlir_libs._mlir").globals.append_dialect_search_prefix(
    __name__.rsplit(".", 2)[0]
)

__all__ = ["PACKAGE", "func", "ir", "irdl", "passmanager", "rewrite", "scf"]
