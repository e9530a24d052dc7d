"""TVM's import in two steps, for a process that compiles and does nothing else."""

from __future__ import annotations

import os
import sys
from types import ModuleType

from composite.compiler.tvm import table


def import_core() -> None:
    """Import TVM's library of objects, which installs a handler of SIGSEGV."""
    import tvm_ffi  # noqa: F401


def import_compiler() -> None:
    """Import TVM's code generators, and all of this package that needs them.

    Without TVM's Relax, distributed runtime and backends of other devices, which take most of its
    import (TVM 0.27): whoever needs these must not call this.
    """
    os.environ["TVM_DEVICE_BACKEND_AUTOLOAD"] = "0"
    left_out: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    left_out["tvm.runtime.disco"] = None  # as if it were not installed
    left_out["tvm.relax"] = ModuleType("tvm.relax")
    import tvm  # noqa: F401

    from composite.compiler.tvm.codegen import entry  # noqa: F401
    from composite.compiler.tvm.proof import branches, guards, walk  # noqa: F401
    from composite.compiler.tvm.strategy import strategies_of, temporaries  # noqa: F401

    strategies_of("cpu")


def import_lowerings() -> None:
    """Import the lowerings of all ops, for a process that is to know every one of them.

    Another process imports those of an op with the first kernel that has such a one.
    """
    for names in table.FAMILIES.values():
        for name in names:
            table.lowering(name)
