"""What is chosen for a process by its environment, and the check of it.

Needs no TensorFlow. The runtime reads these variables itself, but for the compiler's.
"""

from __future__ import annotations

import os

BACKENDS = ("auto", "tvm", "tf")
NUMERICS = ("fast", "strict", "invariant")
LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-bf16")
COMPILERS = ("process", "thread")
REGIONS = "COMPOSITE_REGIONS"
ALGEBRA = "COMPOSITE_ALGEBRA"
ENVIRONMENT = {
    "COMPOSITE_COMPILER": COMPILERS,  # where kernels are compiled
    "COMPOSITE_BACKEND": BACKENDS,
    "COMPOSITE_NUMERICS": NUMERICS,
    REGIONS: ("0", "1"),  # whether parts of graphs become nodes
    ALGEBRA: ("0", "1"),  # 0: kernels are not compared with their bodies by algebra
    "COMPOSITE_ISA": LEVELS,  # the highest level whose kernels may run
}


def check() -> None:
    """ValueError when a variable of ENVIRONMENT has a value that there is not."""
    for variable, allowed in ENVIRONMENT.items():
        value = os.environ.get(variable, "")
        if value and value not in allowed:
            choices = ", ".join(repr(choice) for choice in allowed)
            raise ValueError(f"{variable}={value!r} in the environment is not one of {choices}")
