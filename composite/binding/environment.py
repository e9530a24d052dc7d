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
XLA = "COMPOSITE_XLA"  # "never", or how many seconds XLA waits for a kernel
NEVER = "never"
_MOST_SECONDS = 1e6
ENVIRONMENT = {
    "COMPOSITE_COMPILER": COMPILERS,  # where kernels are compiled
    "COMPOSITE_BACKEND": BACKENDS,
    "COMPOSITE_NUMERICS": NUMERICS,
    REGIONS: ("0", "1"),  # whether parts of graphs become nodes
    ALGEBRA: ("0", "1"),  # 0: kernels are not compared with their bodies by algebra
    "COMPOSITE_ISA": LEVELS,  # the highest level whose kernels may run
}


def is_xla_choice(value: float | str) -> bool:
    """Whether `composite.options(xla=...)` and COMPOSITE_XLA take a value."""
    try:
        return value == NEVER or 0 <= float(value) <= _MOST_SECONDS
    except ValueError:
        return False


def check() -> None:
    """ValueError when a variable of the environment has a value that there is not."""
    xla = os.environ.get(XLA, "")
    if xla and not is_xla_choice(xla):
        raise ValueError(f"{XLA}={xla!r} in the environment is not 'never' or a number of seconds")
    for variable, allowed in ENVIRONMENT.items():
        value = os.environ.get(variable, "")
        if value and value not in allowed:
            choices = ", ".join(repr(choice) for choice in allowed)
            raise ValueError(f"{variable}={value!r} in the environment is not one of {choices}")
