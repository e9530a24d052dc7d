"""Tests that stand for Keras's: some end otherwise with regions. Run by test_foreign.py alone."""

from __future__ import annotations

import os

import pytest

WITH_REGIONS = os.environ["COMPOSITE_REGIONS"] == "1"


def test_is_the_same() -> None:
    if not WITH_REGIONS:
        return  # the other processes need not import TensorFlow
    import tensorflow as tf

    x = tf.linspace(-1.0, 1.0, 12)
    assert tf.function(lambda x: tf.tanh(x * 2.0) + 1.0)(x).shape == (12,)


def test_fails_both_ways() -> None:
    raise AssertionError("without regions, too")


def test_fails_with_regions() -> None:
    assert not WITH_REGIONS, "only without regions"


def test_is_skipped_with_regions() -> None:
    if WITH_REGIONS:
        pytest.skip("only without regions")


def test_ends_the_process_with_regions() -> None:
    if WITH_REGIONS:
        os.abort()


def test_runs_all_the_same() -> None:
    assert True
