"""composite.options, composite.stats and composite.explain."""

import threading

import numpy as np
import pytest
import tensorflow as tf

import composite
from tests.composite.dense_ops import dense

X, W, B = np.ones((2, 3), np.float32), np.ones((4, 3), np.float32), np.zeros(4, np.float32)


def stamped():
    traced = tf.function(lambda x: dense(x, W, B)).get_concrete_function(X)
    (node,) = (n for n in traced.graph.as_graph_def().node if n.op == "TestDense")
    return {n: v.s.decode() for n, v in node.attr.items() if n.startswith("_composite")}


def test_nodes_carry_the_version_and_what_was_chosen():
    assert stamped() == {"_composite_program": dense.digest}
    with composite.options(backend="tf"):
        assert stamped()["_composite_backend"] == "tf"
        with composite.options(numerics="strict"):
            inner = stamped()
            assert (inner["_composite_backend"], inner["_composite_numerics"]) == ("tf", "strict")
        assert "_composite_numerics" not in stamped()
    assert stamped() == {"_composite_program": dense.digest}


def test_a_choice_ends_with_an_exception():
    with pytest.raises(RuntimeError), composite.options(backend="tf"):
        raise RuntimeError
    assert "_composite_backend" not in stamped()


def test_a_choice_is_of_its_thread():
    seen = []
    with composite.options(backend="tf"):
        thread = threading.Thread(target=lambda: seen.append(stamped()))
        thread.start()
        thread.join()
    assert "_composite_backend" not in seen[0]


@pytest.mark.parametrize("wrong", [{"backend": "tvn"}, {"numerics": "exact"}, {"backend": ""}])
def test_unknown_values_are_errors(wrong):
    with pytest.raises(ValueError, match="is not one of"), composite.options(**wrong):
        pass


def test_an_unknown_default_is_an_error_at_the_first_op(run_python):
    code = "import tests.composite.dense_ops"
    done = run_python(code, env={"COMPOSITE_BACKEND": "x"}, check=False)
    assert (
        "COMPOSITE_BACKEND='x' in the environment is not one of 'auto', 'tvm', 'tf'" in done.stderr
    )
    done = run_python(code, env={"COMPOSITE_NUMERICS": "exact"}, check=False)
    assert "COMPOSITE_NUMERICS='exact' in the environment is not one of 'fast'" in done.stderr
    done = run_python(code, env={"COMPOSITE_LOG": "loud"}, check=False)
    assert "COMPOSITE_LOG='loud'" in done.stderr


def test_stats_count_and_reset():
    composite.stats(reset=True)
    with composite.options(backend="tf"):
        dense(X, W, B)
    now = composite.stats()
    assert now["expansion_runs"] == 1
    assert now["kernel_launches"] == 0
    assert now["copies"] == 0
    assert "expansion_runs  " in repr(now)
    assert set(now) >= {"expansions", "kernel_launches", "compiles", "copies"}
    with composite.options(backend="tf"):
        dense(X, W, B)
    assert (composite.stats() - now)["expansion_runs"] == 1
    assert composite.stats(reset=True)["expansion_runs"] == 2
    assert composite.stats()["expansion_runs"] == 0


def test_explain_tells_the_path_and_why():
    with composite.options(backend="tf"):
        told = composite.explain(dense, X, W, B)
    assert told.path == "expansion"
    assert told.final
    assert told.reason
    assert str(told).startswith("TestDense -> expansion")
    assert composite.explain(dense, tf.TensorSpec([2, 3]), W, B).path in (
        "kernel",
        "compiling",
        "expansion",
    )
    with pytest.raises(TypeError, match="composite op"):
        composite.explain(tf.matmul, X, W)
