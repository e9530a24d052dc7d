"""Models that were saved with older bodies: they keep these, or take today's when asked to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from tensorflow.core.framework.node_def_pb2 import NodeDef

import composite
from composite.cli.main import main
from composite.ops import functions
from composite.saving import portable, saved_model, updating
from tests.composite.saving import updated_ops
from tests.conftest import environment
from tests.fork_server import Server

pytestmark = pytest.mark.usefixtures("expansions_only")
X = np.linspace(-1.0, 2.0, 4, dtype=np.float32)
FORMS = ("nodes", "portable")

# Models with the ops as they were: one of a function, of a loop and of a branch; a gradient; and
# one of each op whose signature is another today.
OLDER = """
import sys
from pathlib import Path

import tensorflow as tf

import composite
from composite import Composite

folder = Path(sys.argv[1])


@Composite("UpdatedInner", inputs=["x: float"], outputs=["y: float"])
def inner(x):
    return x + 1.0


@Composite("UpdatedOuter", inputs=["x: float"], attrs=["by: float = 2.0"],
           outputs=["y: float", "z: float"])
def outer(x, by):
    return inner(x) * by, x


@Composite("UpdatedSame", inputs=["x: float"], outputs=["y: float"])
def same(x):
    return x * x


@Composite("UpdatedAttr", inputs=["x: float"], attrs=["by: float"], outputs=["y: float"])
def attr(x, by):
    return x * by


@Composite("UpdatedInput", inputs=["x: float"], outputs=["y: float"])
def another_input(x):
    return x


@Composite("UpdatedOutput", inputs=["x: float"], outputs=["y: float"])
def another_output(x):
    return x


@Composite("UpdatedGone", inputs=["x: float"], outputs=["y: float"])
def gone(x):
    return x * 7.0


def save(name, function):
    model = tf.Module()
    model.run = tf.function(function, input_signature=[tf.TensorSpec([4])])
    for form in ("nodes", "portable"):
        composite.save(model, folder / name / form, form)


def whole(x):
    y, z = outer(same(x))
    for _ in tf.range(2):
        y += outer(z, by=3.0)[0]
    return tf.cond(y[0] > 9e9, lambda: y, lambda: inner(y) + z)


def slope(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = outer(x)[0]
    return tape.gradient(y, x)


save("whole", whole)
save("slope", slope)
save("attr", lambda x: attr(x, by=2.0))
save("input", another_input)
save("output", lambda x: another_output(x) + 1.0)
save("gone", lambda x: gone(inner(x)))
"""


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory, fork_server: Server) -> Path:
    folder = tmp_path_factory.mktemp("older")
    script = folder / "older_ops.py"
    script.write_text(OLDER, encoding="utf-8")
    done = fork_server.run([str(script), str(folder)], folder, environment(), timeout=300)
    done.check_returncode()
    return folder


def whole(x: Any, inner: float, by: float, outer: float) -> Any:
    """What the model computes when inner adds `inner`, and outer adds `outer`."""

    def outers(x: Any, by: float) -> Any:
        return (x + inner) * by + outer

    z = x * x
    return outers(z, 2.0) + 2 * outers(z, 3.0) + inner + z


def ran(folder: Path) -> Any:
    return tf.saved_model.load(str(folder)).run(tf.constant(X)).numpy()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("then", FORMS)
def test_today_s_bodies_on_request(older: Path, tmp_path: Path, form: Any, then: Any) -> None:
    composite.save(older / "whole" / form, tmp_path / "out", then, update=True)
    np.testing.assert_allclose(ran(tmp_path / "out"), whole(X, 10.0, 2.0, 5.0), rtol=1e-6)
    graph_def = saved_model.read(tmp_path / "out").meta_graphs[0].graph_def
    assert updating.updated(graph_def)[1] == []


def test_a_portable_model_keeps_its_bodies(older: Path, tmp_path: Path) -> None:
    composite.save(older / "whole" / "portable", tmp_path / "out", "portable")
    np.testing.assert_allclose(ran(tmp_path / "out"), whole(X, 1.0, 2.0, 0.0), rtol=1e-6)


def test_an_op_that_is_not_here_stays_its_function(older: Path) -> None:
    graph_def = saved_model.read(older / "gone" / "portable").meta_graphs[0].graph_def
    newer, updates = updating.updated(graph_def)
    assert [update.op for update in updates] == ["UpdatedInner"]
    calls = [n for n in functions.nodes(newer) if portable.STANDS_FOR in n.attr]
    assert [NodeDef.FromString(n.attr[portable.STANDS_FOR].s).op for n in calls] == ["UpdatedGone"]
    assert [f for f in newer.library.function if "_implements" in f.attr] == [
        f for f in graph_def.library.function if f.attr["_implements"].s == b"UpdatedGone"
    ]


def test_a_node_of_an_op_that_is_not_here_is_an_error(older: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nodes of UpdatedGone, which this process does not know"):
        composite.save(older / "gone" / "nodes", tmp_path / "out", update=True)


def test_functions_of_older_bodies_are_dropped(older: Path) -> None:
    graph_def = saved_model.read(older / "whole" / "portable").meta_graphs[0].graph_def
    newer = updating.updated(graph_def)[0]
    stood_for = [f.attr["_implements"].s for f in newer.library.function if "_implements" in f.attr]
    assert stood_for == [b"UpdatedSame"]


def test_a_function_that_some_tool_edited_stays(older: Path) -> None:
    graph_def = saved_model.read(older / "gone" / "portable").meta_graphs[0].graph_def
    for node in functions.nodes(graph_def):
        for tensor in (node.attr["value"].tensor,) if node.op == "Const" else ():
            if tensor.float_val[:] == [1.0]:
                tensor.float_val[:] = [1.5]
    newer, updates = updating.updated(graph_def)
    assert not updates
    assert newer == graph_def


def test_a_damaged_mark_leaves_the_call(older: Path) -> None:
    graph_def = saved_model.read(older / "gone" / "portable").meta_graphs[0].graph_def
    for node in functions.nodes(graph_def):
        if portable.STANDS_FOR in node.attr:
            node.attr[portable.STANDS_FOR].s = b"\xff\xff"
    assert updating.updated(graph_def) == (graph_def, [])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("slope", "is part of a gradient or a region, which was derived from the older Updated"),
        ("attr", r"UpdatedAttr, which has no attribute by any more \(.*updated_ops.py:\d+\)"),
        ("input", "UpdatedInput"),
        ("output", "UpdatedOutput"),
    ],
)
def test_what_does_not_fit_is_an_error(
    older: Path, tmp_path: Path, form: str, name: str, reason: str
) -> None:
    with pytest.raises(ValueError, match=f"(?s){reason}.*[Ss]ave the model again"):
        composite.save(older / name / form, tmp_path / "out", update=True)
    assert not (tmp_path / "out").exists()


def test_the_command_updates(older: Path, tmp_path: Path) -> None:
    arguments = [str(older / "whole" / "portable"), "-o", str(tmp_path / "out"), "--update"]
    done = CliRunner().invoke(main, ["export", *arguments, "--source", updated_ops.__file__])
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(ran(tmp_path / "out"), whole(X, 10.0, 2.0, 5.0), rtol=1e-6)


def test_a_file_of_keras_means_today_s_ops(tmp_path: Path) -> None:
    inputs = tf.keras.Input([4])
    model = tf.keras.Model(inputs, inputs + 1.0)
    with pytest.raises(ValueError, match=re.escape("leave update out")):
        composite.save(model, tmp_path / "model.keras", update=True)
