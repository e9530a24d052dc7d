"""TensorFlow's own debugging tools, with ops in what they look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.debug.lib import debug_events_reader

from composite import Composite

pytestmark = pytest.mark.usefixtures("expansions_only")


@Composite("ToolsRatio", inputs=["x: float"], outputs=["y: float"])
def ratio(x: Any) -> Any:
    return 1.0 / x


def test_check_numerics_sees_what_ops_give() -> None:
    traced = tf.function(ratio)
    tf.debugging.enable_check_numerics()
    try:
        for function in (ratio, traced):
            function(tf.constant([2.0]))
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)Infinity.*ToolsRatio"):
                function(tf.constant([2.0, 0.0]))
    finally:
        tf.debugging.disable_check_numerics()


def test_the_debugger_dumps_calls_and_nodes(tmp_path: Path) -> None:
    writer = tf.debugging.experimental.enable_dump_debug_info(
        str(tmp_path), tensor_debug_mode="FULL_HEALTH", circular_buffer_size=-1
    )
    try:
        ratio(tf.constant([2.0, 0.0]))
        tf.function(ratio)(tf.constant([2.0, 0.0]))
        writer.FlushNonExecutionFiles()
        writer.FlushExecutionFiles()
    finally:
        tf.debugging.experimental.disable_dump_debug_info()
    with debug_events_reader.DebugDataReader(str(tmp_path)) as reader:
        reader.update()
        eager = next(one for one in reader.executions() if one.op_type == "ToolsRatio")
        (node,) = reader.graph_execution_traces()
    assert node.op_type == "ToolsRatio"
    for values in (eager.debug_tensor_values[0], node.debug_tensor_value):
        assert list(values)[-6:] == [0, 1, 0, 0, 0, 1]  # -inf, inf, nan, < 0, 0, > 0


def test_functions_that_run_eagerly() -> None:
    seen = []

    @tf.function
    def function(x: Any) -> Any:
        y = ratio(x)
        seen.append(float(y))
        return y

    tf.config.run_functions_eagerly(True)
    try:
        function(tf.constant(2.0))
    finally:
        tf.config.run_functions_eagerly(False)
    assert seen == [0.5]


def test_stablehlo_as_text() -> None:
    @tf.function(jit_compile=True)
    def traced(x: Any) -> Any:
        return ratio(x)

    text = traced.experimental_get_compiler_ir(tf.constant([2.0, 4.0]))(stage="stablehlo")
    assert "stablehlo.divide" in text
    assert "ToolsRatio" not in text
