"""The models that are saved are what was written by hand, and known again once they are loaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

import composite
from benchmarks.stock import served
from benchmarks.subjects.gallery import by_hand
from benchmarks.works.saved import SAVED
from composite.binding import native
from composite.binding.records import NodeDef
from composite.ops import functions
from composite.saving.portable import CONTENT


@pytest.mark.usefixtures("expansions_only")
@pytest.mark.parametrize("name", SAVED)
def test_a_portable_model_is_what_was_written_by_hand(name: str, tmp_path: Path) -> None:
    work = SAVED[name]
    for form, use in (("portable", lambda op: op), ("by_hand", by_hand)):
        composite.save(work.model(use), tmp_path / form, "portable")
    y, expected = (
        served(tmp_path / form, work.input())().numpy() for form in ("portable", "by_hand")
    )
    assert np.abs(y - expected).max() <= work.tolerance * np.abs(expected).max()
    assert not calls(tmp_path / "by_hand")
    assert all(calls(tmp_path / "portable"))


def calls(model: Path) -> list[bool]:
    """Of each call that stands for a node whether its function, once loaded, is the one meant."""
    loaded = tf.saved_model.load(str(model))
    graph = loaded.signatures["serving_default"].graph.as_graph_def()
    library = {function.signature.name: function for function in graph.library.function}
    known = []
    for node in (node for function in library.values() for node in function.node_def):
        if CONTENT in node.attr:
            reached = functions.reachable(node.attr["f"].func.name, library)
            called = FunctionDefLibrary(function=[library[one] for one in reached])
            digest = NodeDef.FromString(native.call("composite_function_digest", called))
            known.append(digest.attr["digest"].s == node.attr[CONTENT].s)
    assert known or model.name == "by_hand"
    return known
