"""What the pass would break keeps its own nodes, is counted and logged: the pass is broken here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tensorflow as tf

from composite.binding import settings as options
from tests.runtime import kernel_support as k
from tests.runtime.regions.test_form_regions import assert_close, formed, with_regions, without
from tests.runtime.regions.test_partition import library_of, regions_of, traced

WAYS = ("input", "dtype", "cycle", "function")


def break_graphs(how: str) -> None:
    k.request("composite_test_break_graphs", k.node("", "", how=how))


@pytest.fixture(params=WAYS)
def broken(request: pytest.FixtureRequest) -> Iterator[str]:
    break_graphs(request.param)
    yield request.param
    break_graphs("")


def invalid() -> int:
    return int(k.stats()["invalid_graphs"])


def chain(x: Any) -> Any:
    return tf.nn.relu(x + 1.0) * 2.0


def test_a_function_keeps_its_nodes(broken: str) -> None:
    before = invalid()
    found, count = with_regions(chain, tf.ones([3]))
    assert count == 0
    assert invalid() == before + 1
    assert_close(found, [[4.0] * 3])


def test_what_a_function_calls_keeps_its_nodes(broken: str) -> None:
    inner = tf.function(chain, autograph=False)

    def body(x: Any) -> Any:
        # Not of one op, so that no region takes it in.
        return inner(x) + tf.math.lgamma(inner(x * 2.0))

    wanted = without(body, tf.ones([3]))
    before = invalid()
    found, count = with_regions(body, tf.ones([3]))
    assert count == 0
    assert invalid() >= before + 1
    assert_close(found, wanted)


def test_variables_are_updated_once(broken: str) -> None:
    variable = tf.Variable(tf.ones([3]))

    def body(x: Any) -> None:
        variable.assign_add(chain(x))
        variable.assign_sub(chain(x) * 0.5)

    with_regions(body, tf.ones([3]))
    assert_close([variable], [[3.0] * 3])


def test_a_trip_keeps_its_nodes(broken: str) -> None:
    def body(x: Any) -> Any:
        def trip(i: Any, x: Any) -> Any:
            return i + 1, tf.math.lgamma(chain(x))

        return tf.while_loop(lambda i, _: i < 3, trip, [0, x])[1]

    wanted = without(body, tf.ones([3]))
    before = invalid()
    found, count = with_regions(body, tf.ones([3]))
    assert count == 0
    assert invalid() == before + 1
    assert_close(found, wanted)


def test_the_next_function_has_regions() -> None:
    break_graphs("input")
    with_regions(chain, tf.ones([3]))
    break_graphs("")
    assert with_regions(chain, tf.ones([3]))[1] == 1


def test_who_asks_for_the_regions_is_told(broken: str) -> None:
    message = {
        "input": "input",
        "dtype": "composite_region",
        "cycle": "cycle",
        "function": "not in the library",
    }[broken]
    with pytest.raises(tf.errors.OpError, match=message):
        regions_of(library_of(traced(chain, [tf.TensorSpec([3])])))


def test_an_unknown_way_is_an_error() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="write one of"):
        break_graphs("gently")


def test_a_valid_function_is_not_counted() -> None:
    before = invalid(), formed()
    with options.options(regions=True):
        tf.function(chain)(tf.ones([3]))
    assert (invalid(), formed()) == (before[0], before[1] + 1)


SCRIPT = """
import tensorflow as tf
import composite
from tests.runtime import kernel_support as k

k.request("composite_test_break_graphs", k.node("", "", how="cycle"))
with composite.options(regions=True):
    step = tf.function(lambda x: tf.nn.relu(x + 1.0) * 2.0)
    step(tf.ones([3]))
    step(tf.ones([3]))
print(composite.stats()["invalid_graphs"])
"""


def test_one_line_is_logged(run_python: Callable[..., Any]) -> None:
    done = run_python(SCRIPT, env={"TF_CPP_MIN_LOG_LEVEL": "1"})
    assert done.stdout.strip() == "1"
    lines = [line for line in done.stderr.splitlines() if "Composite:" in line]
    assert len(lines) == 1
    assert "runs without regions, with which it would not be valid" in lines[0]
