"""When timed rounds say which of two functions to call."""

from __future__ import annotations

import numpy as np
import pytest

from composite.acceleration import timing


@pytest.mark.parametrize(
    ("ratio", "spread", "rounds", "is_clear"),
    [
        (2.0, 0.1, 7, True),
        (0.5, 0.1, 7, True),
        (1.03, 0.1, 7, False),
        (1.2, 0.5, 7, False),
        (1.2, 0.5, 1000, True),  # a busy machine: more rounds tell
        (1.03, 0.5, 1000, False),
    ],
)
def test_rounds_say_which_function_gains(ratio, spread, rounds, is_clear):
    first = ratio * np.exp(spread * np.linspace(-2, 2, rounds))
    assert timing._is_clear([first.tolist(), [1.0] * rounds], 1.03) is is_clear
