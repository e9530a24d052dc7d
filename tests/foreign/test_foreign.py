"""Keras's own tests end with regions as they do without, and what differs is found."""

from __future__ import annotations

import pytest

from tests.foreign import compare, modules

LIMIT = 300.0


@pytest.mark.slow
def test_layers_of_keras() -> None:
    found = compare.compared("keras.src.layers.core.dense_test", "dense_basics", LIMIT)
    assert found.lines == []
    assert found.counts.tests == 1
    assert found.counts.regions and found.counts.launches
    assert found.counts.with_kernels == 1


@pytest.mark.slow
def test_each_difference_is_told() -> None:
    found = compare.compared("tests.foreign.samples", "", LIMIT)
    told = {line.partition(": ")[0].rpartition("::")[2]: line for line in found.lines}
    assert sorted(told) == [
        "test_ends_the_process_with_regions",
        "test_fails_with_regions",
        "test_is_skipped_with_regions",
    ]
    ended = told["test_ends_the_process_with_regions"]
    assert "passed, with regions ended in pass 1: by signal SIGABRT: Fatal Python error" in ended
    assert "passed, with regions failed in pass " in told["test_fails_with_regions"]
    assert "only without regions" in told["test_fails_with_regions"]
    assert "passed, with regions skipped in pass " in told["test_is_skipped_with_regions"]
    assert found.counts.tests >= 5
    assert found.counts.regions == found.counts.launches + 1 >= 2  # a call of each pass


def test_outcomes_are_compared_test_by_test() -> None:
    plain = {"a": ("passed", ""), "b": ("failed", "x"), "c": ("passed", ""), "d": ("passed", "")}
    ours = {
        "1 a": ("passed", ""),
        "2 a": ("failed", "it is 3"),
        "1 b": ("failed", "y"),
        "2 b": ("failed", "y"),
        "1 c": ("ended", "by signal SIGSEGV"),
        "1 d": ("passed", ""),
    }
    assert compare.differing(plain, ours) == {
        "a": "failed in pass 2: it is 3",
        "c": "ended in pass 1: by signal SIGSEGV",
    }
    passed = {"e": ("passed", "")}
    assert compare.differing(passed, {}) == {"e": "not run"}
    ended = {"1 ": ("error", "by signal SIGSEGV")}
    assert compare.differing(passed, ended) == {"e": "not run: by signal SIGSEGV"}


def test_files_are_named_as_folders_or_one_by_one() -> None:
    assert len(modules.named(["layers"])) > 100
    assert modules.named(["layers/core/dense_test.py"]) == ["keras.src.layers.core.dense_test"]
    with pytest.raises(ValueError, match="has no tests"):
        modules.named(["layers/core/nothing_test.py"])
