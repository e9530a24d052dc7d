"""timings.json of a built library: what was measured, where, for each kernel.

Beside the library and no part of its digest. The registration code of the library reads it without
a JSON parser: it looks for `"<kernel>": {"verdict": "expansion"`, so the layout here is fixed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping


def timings(machine: str, kernels: Mapping[str, tuple[str, float, float]]) -> str:
    """The text for kernels by name: verdict ("kernel" or "expansion") and microseconds of each."""
    lines = [
        f"  {json.dumps(name)}: "
        + json.dumps(
            {"verdict": verdict, "kernel_us": round(kernel, 3), "expansion_us": round(expansion, 3)}
        )
        for name, (verdict, kernel, expansion) in sorted(kernels.items())
    ]
    body = ",\n".join(lines)
    return f'{{\n "machine": {json.dumps(machine)},\n "kernels": {{\n{body}\n }}\n}}\n'
