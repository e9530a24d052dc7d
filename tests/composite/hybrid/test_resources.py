"""Resources that are made anew by their own initializers, and the files that these read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from composite.hybrid import assets, resources


class Words(tf.saved_model.experimental.TrackableResource):
    """The text of a file, as a variable that TensorFlow does not know as one."""

    def __init__(self, file: Path, other: Any = None) -> None:
        super().__init__()
        self.file, self.other = tf.saved_model.Asset(str(file)), other
        self._initialize()

    def _create_resource(self) -> Any:
        return tf.raw_ops.VarHandleOp(dtype=tf.string, shape=[], shared_name="test_resources")

    def _initialize(self) -> None:
        text = tf.io.read_file(self.file.asset_path)
        if self.other is not None:
            text += tf.raw_ops.ReadVariableOp(resource=self.other, dtype=tf.string)
        tf.raw_ops.AssignVariableOp(resource=self.resource_handle, value=text)

    def _destroy_resource(self) -> None:
        tf.raw_ops.DestroyResourceOp(resource=self.resource_handle)


@pytest.fixture
def words(tmp_path: Path) -> Words:
    (tmp_path / "words.txt").write_text("a b c")
    return Words(tmp_path / "words.txt")


def test_a_resource_and_the_file_that_it_reads(words: Words, tmp_path: Path) -> None:
    handle = words.resource_handle
    assert resources.is_remade(handle)
    nodes, functions = resources.remade("held", handle)
    assert [node.op for node in nodes if node.op != "Const"] == [
        "StatefulPartitionedCall", "StatefulPartitionedCall", "Identity",
    ]  # fmt: skip
    assert nodes[-1].input[:] == ["held/made:output:0", "^held/initialized"]
    (file,) = (node for node in nodes if assets.ASSET in node.attr)
    assert file.attr["value"].tensor.string_val[:] == [b"a b c"]
    names = {function.signature.name for function in functions}
    assert {node.attr["f"].func.name for node in nodes if "f" in node.attr} <= names


def test_what_is_not_made_anew(words: Words, tmp_path: Path) -> None:
    queue = tf.queue.FIFOQueue(4, [tf.float32])
    assert not resources.is_remade(queue.queue_ref)
    other = Words(tmp_path / "words.txt", words.resource_handle)
    with pytest.raises(ValueError, match="the initializer of held/1 needs another resource"):
        resources.remade("held", other.resource_handle)
