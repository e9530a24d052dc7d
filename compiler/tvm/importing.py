"""TVM's import in two steps, for whoever has signal handlers of his own."""

from __future__ import annotations


def import_core() -> None:
    """Import TVM's library of objects, which installs a handler of SIGSEGV."""
    import tvm_ffi  # noqa: F401


def import_all() -> None:
    """Import TVM, with its code generators."""
    import tvm  # noqa: F401
