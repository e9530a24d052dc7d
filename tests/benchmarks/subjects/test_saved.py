"""A model in three ways: the benchmark says how far they are apart, and what ran."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.subjects import saved
from benchmarks.timing import QUICK_ENVIRONMENT
from benchmarks.works.saved import SavedWork
from examples.gallery.mish import mish

pytestmark = pytest.mark.slow  # two more processes load TensorFlow


def test_a_model_gives_the_same_numbers_in_every_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "SECONDS", 0.01)
    monkeypatch.setenv(QUICK_ENVIRONMENT, "1")
    work = SavedWork(4, 16, lambda use, weights: use(mish))
    program = saved.serving_program(tmp_path)
    difference, regained, kept = saved.of_model("Mish", work, tmp_path / "model", program)
    assert difference.holds, difference
    assert "TensorFlow alone" in difference.detail
    assert "C: kernel_launches" in difference.detail
    assert "nodes" in regained.detail and "by_hand" in kept.detail
