"""The README's example is code that runs as it stands there."""

from __future__ import annotations

import re
from typing import Any

import pytest


def test_the_example_runs(run_python: Any, pytestconfig: pytest.Config) -> None:
    text = (pytestconfig.rootpath / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 1
    printed = run_python(blocks[0]).stdout
    assert "ScaledTanh" in printed
