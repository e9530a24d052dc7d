"""Rectangles of products: which one the sizes of a call take."""

from __future__ import annotations

import pytest
import tensorflow as tf

from composite.compiler.tvm.cuda.build import write_cuda
from composite.compiler.tvm.ir import dims
from composite.compiler.tvm.target import CudaTarget
from tests.compiler.tvm.conftest import library_of
from tests.compiler.tvm.strategy.cuda.test_tensor_product import dense


def works(shapes: list[list[int | str]], sizes: dict[str, int]) -> list[int]:
    """The units of work of a float16 product's launches."""
    specs = [
        tf.TensorSpec([d if isinstance(d, int) else None for d in s], "float16") for s in shapes
    ]
    library = library_of(tf.autograph.experimental.do_not_convert(dense), specs)
    kernel = write_cuda(library, shapes, target=CudaTarget.level("sm_90"), name="one")
    return [dims.evaluate(one.work, sizes, int) for one in kernel.plan.launches]


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        (0, [0, 0, 0]), (1, [0, 0, 64]), (64, [0, 0, 64]), (384, [0, 96, 0]), (512, [0, 128, 0]),
        (640, [80, 0, 0]), (4096, [512, 0, 0]),
    ],
)  # fmt: skip
def test_a_call_takes_the_largest_of_which_it_has_enough(rows: int, wanted: list[int]) -> None:
    shapes: list[list[int | str]] = [["s0", 64], [64, 4096], [4096], ["s0", 4096]]
    assert works(shapes, {"s0": rows}) == wanted


def test_rectangles_are_no_wider_than_the_result() -> None:
    shapes: list[list[int | str]] = [["s0", 64], [64, 72], [72], ["s0", 72]]
    assert works(shapes, {"s0": 1 << 16}) == [512, 0]


def test_a_product_of_known_sizes_has_one_launch() -> None:
    assert works([[64, 64], [64, 4096], [4096], [64, 4096]], {}) == [64]
