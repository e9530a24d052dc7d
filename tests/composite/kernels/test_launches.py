"""How authors state the launches of a kernel for a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from composite.kernels.launches import Launch, fields

NAMES = {"x": "in0", "y": "out0", "n": "s0", "m": "s1"}


def test_the_fields_of_a_record() -> None:
    first = Launch("rows", grid=("(n + 255) // 256", "m % 7 - 1", 2), block=256)
    second = Launch("all", "n*m", (16, 4), ("x", "y", "m", 3, -0.5, np.float64(2), 0), shared=512)
    assert fields([first, second], NAMES) == {
        "launch_functions": ("rows", "all"),
        "launch_work": ("1", "1"),
        "launch_share": (1, 1),
        "launch_threads": (256, 64),
        "launch_shared": (0, 0),
        "launch_arguments": ("", "in0 out0 size1 int=3 float=-0.5 double=2.0 int=0"),
        "launch_grid": ("s0 255 + 256 //,s1 7 % 1 -,2", "s0 s1 *"),
        "launch_block": ("256", "16,4"),
        "launch_dynamic": (0, 512),
    }


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        (Launch("f", "n // ", 1), "the grid of f is 'n // ': invalid syntax"),
        (Launch("f", "n / 2", 1), r"the grid of f is 'n / 2': n / 2 is no number"),
        (Launch("f", "x", 1), "the grid of f is 'x': x is no number, no dim that varies"),
        (Launch("f", "-n", 1), "-n is no number"),
        (Launch("f", (), 1), r"the grid of f is \(\): give one to three sizes"),
        (Launch("f", 1, (1, 1, 1, 1)), r"the block of f is \(1, 1, 1, 1\): give one to three"),
        (Launch("f", 1, "n"), "the block of f is 'n'"),  # type: ignore[arg-type]
        (Launch("f", 1, 1, ("z",)), "f is to be passed 'z', which is none of x, y, n, m"),
    ],
)
def test_what_is_no_launch(launch: Launch, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fields([launch], NAMES)
