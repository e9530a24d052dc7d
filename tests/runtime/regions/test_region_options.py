"""Which processes form regions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import tensorflow as tf

from composite.binding import settings as options
from tests.runtime import kernel_support as k
from tests.runtime.regions.test_form_regions import assert_close, formed, with_regions


@pytest.fixture
def no_kernels() -> Iterator[None]:
    """The process compiles nothing."""
    k.request("composite_set_kernel_ops", k.node("", "", ops=[]))
    yield
    k.request("composite_set_kernel_ops", k.node("", "", ops=["NoOp"]))


@pytest.mark.usefixtures("no_kernels")
def test_where_no_kernel_may_come_there_are_no_regions() -> None:
    def body(x: Any) -> Any:
        return tf.tanh(x * 1.75) * 3.5

    results, count = with_regions(body, tf.ones([3]))
    assert_close(results, [body(tf.ones([3]))])
    assert count == 0

    def composite_accelerated_f(x: Any) -> Any:  # as a saved model has it
        return body(x)

    before = formed()
    assert_close([tf.function(composite_accelerated_f)(tf.ones([3]))], results)
    assert formed() == before
    with (
        options.options(regions=True, backend="tvm"),  # where one is a must, its lack is told
        pytest.raises(tf.errors.FailedPreconditionError, match=r"region [0-9a-f]{8} of "),
    ):
        tf.function(body)(tf.ones([3]))
