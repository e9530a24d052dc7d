"""`composite.hybrid`: whole models in TVM's Relax VM, which calls TensorFlow for what TVM lacks.

The regions are those of `composite.accelerate`, seen from the other side: there TensorFlow runs the
model and calls kernels, here TVM's VM does and calls TensorFlow.
"""

from __future__ import annotations

from composite.hybrid.compiling import compile  # noqa: A004 - named as tvm.compile is
from composite.hybrid.module import HybridModule, load
from composite.hybrid.report import HybridReport
from composite.hybrid.runtime import register
from composite.hybrid.transfer import Opaque

__all__ = ["HybridModule", "HybridReport", "Opaque", "compile", "load", "register"]
