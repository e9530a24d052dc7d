"""Lookup tables in modules: every kind of table, with the contents of the time of compiling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from composite import hybrid
from composite.hybrid import tables

WORDS = ["a", "b", "zz", "b"]


def static(keys: Any, values: Any, default: Any) -> Any:
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), default)


def assert_looks_up(table: Any, keys: Any) -> hybrid.HybridModule:
    """A module of a lookup, with any number of keys, returns what the table does."""
    asked = tf.convert_to_tensor(keys)
    spec = tf.TensorSpec([None, *asked.shape[1:]], asked.dtype)
    module = hybrid.compile(lambda x: (table.lookup(x), table.size()), spec)
    wanted, size = table.lookup(asked), table.size()
    for rows in (len(asked), 1, 0):
        found, entries = module(asked[:rows])
        np.testing.assert_array_equal(found, wanted[:rows])
        assert (found.dtype, int(entries)) == (wanted.dtype, int(size))
    return module


@pytest.mark.parametrize(
    ("keys", "values"),
    [
        (tf.string, tf.int64), (tf.string, tf.int32), (tf.string, tf.string), (tf.string, tf.bool),
        (tf.string, tf.float32), (tf.string, tf.float64), (tf.int32, tf.int32),
        (tf.int32, tf.float32), (tf.int32, tf.string), (tf.int64, tf.int64), (tf.int64, tf.int32),
        (tf.int64, tf.float64), (tf.int64, tf.string),
    ],
    ids=lambda dtype: dtype.name,
)  # fmt: skip
def test_static_tables(keys: tf.DType, values: tf.DType) -> None:
    def numbers(dtype: tf.DType, *some: int) -> Any:
        return tf.strings.as_string(some) if dtype == tf.string else tf.cast(some, dtype)

    table = static(numbers(keys, 2, 7, 3), numbers(values, 1, 0, 5), numbers(values, 9)[0])
    assert_looks_up(table, numbers(keys, 7, 4, 2, 3, 7))


def test_a_table_of_a_file_needs_it_no_more(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("a\nb\nc\n")
    index = tf.lookup.TextFileIndex
    read = tf.lookup.TextFileInitializer(
        str(file), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )
    module = assert_looks_up(tf.lookup.StaticHashTable(read, -1), WORDS)
    file.unlink()
    module.save(tmp_path / "words.so")
    assert hybrid.load(tmp_path / "words.so")(["c", "?"])[0].numpy().tolist() == [2, -1]
    assert module.report is not None
    assert module.report.kept == ("a table of 3 entries, string to int64",)
    assert "it keeps a table of 3 entries" in str(module.report)


def test_a_table_that_a_checkpoint_filled(tmp_path: Path) -> None:
    def table() -> Any:
        return tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)

    before, after = table(), table()
    before.insert(["a", "zz"], tf.constant([4, 5], tf.int64))
    saved = tf.train.Checkpoint(table=before).save(str(tmp_path / "checkpoint"))
    tf.train.Checkpoint(table=after).restore(saved).expect_partial()
    module = assert_looks_up(after, WORDS)
    assert module(WORDS)[0].numpy().tolist() == [4, 0, 5, 0]


def test_words_without_an_entry_have_buckets() -> None:
    read = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64))
    assert_looks_up(tf.lookup.StaticVocabularyTable(read, 5), [*WORDS, "x", "y"])


@pytest.mark.parametrize("default", [0.0, [0.0, 1.0, 2.0]], ids=["numbers", "vectors"])
def test_mutable_tables(default: Any) -> None:
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, default)
    assert_looks_up(table, WORDS)  # which has nothing
    table.insert(["a", "b"], tf.random.stateless_normal([2, *np.shape(default)], [1, 2]))
    module = assert_looks_up(table, WORDS)
    before, _ = module(WORDS)
    table.insert(["zz"], tf.ones([1, *np.shape(default)]))  # a module has the table of its time
    np.testing.assert_array_equal(module(WORDS)[0], before)


@pytest.mark.parametrize("erased", [0, 1, 2])
@pytest.mark.parametrize("size", [3, 40])
def test_dense_tables_refuse_the_same_keys(size: int, erased: int) -> None:
    table = tf.lookup.experimental.DenseHashTable(
        tf.int64, tf.bool, False, empty_key=-1, deleted_key=-2, initial_num_buckets=4
    )
    keys = tf.range(10, 10 + size, dtype=tf.int64)
    table.insert(keys, keys % 3 == 0)
    table.erase(keys[:erased])
    module = assert_looks_up(table, tf.concat([keys, [4]], 0))
    refused = [-1, -2] if erased else [-1]
    for key in refused:
        with pytest.raises(tf.errors.InvalidArgumentError, match="not allowed"):
            module(tf.constant([key], tf.int64))


@pytest.mark.parametrize("width", [1, 2])
def test_keys_may_be_vectors(width: int) -> None:
    table = tf.lookup.experimental.DenseHashTable(
        tf.string, tf.float32, [0.0], empty_key=["-"] * width, deleted_key=["="] * width
    )
    keys = tf.constant([["a"] * width, ["b"] * width])
    table.insert(keys, [[1.0], [2.0]])
    assert_looks_up(table, [["b"] * width, ["c"] * width, ["a"] * width])
    integers = tf.lookup.experimental.DenseHashTable(
        tf.int64, tf.int64, 0, empty_key=[-1] * width, deleted_key=[-2] * width
    )
    integers.insert(tf.constant([[5] * width, [6] * width], tf.int64), [7, 8])
    assert_looks_up(integers, tf.constant([[6] * width, [1] * width], tf.int64))


@pytest.mark.parametrize("width", [0, 2])
def test_many_words(width: int) -> None:
    words = [f"{k}\N{SNOWMAN}" * (k % 4) + str(k) for k in range(3000)]
    if not width:
        assert_looks_up(static(words, tf.range(3000), -1), [words[k] for k in (0, 2999, 17)])
        assert_looks_up(static(tf.range(3000), words, "?"), [0, 2999, -5])
        return
    table = tf.lookup.experimental.DenseHashTable(
        tf.string, tf.int64, -1, empty_key=["", ""], deleted_key=["", "-"]
    )
    keys = tf.constant([[word, word[::-1]] for word in words])
    table.insert(keys, tf.range(3000, dtype=tf.int64))
    assert_looks_up(table, tf.concat([keys[:3], keys[-2:], keys[:2, ::-1]], 0))


def test_contents_are_in_the_order_of_their_keys() -> None:
    table = static(["c", "a", "b"], [1, 2, 3], 0)
    keys, values, reserved = tables.contents(table.resource_handle, tf.string, tf.int32)
    assert (keys.tolist(), values.tolist(), reserved) == ([b"a", b"b", b"c"], [2, 3, 1], [])


def test_tables_are_found_in_calls_branches_and_loops() -> None:
    table = static(["a", "b"], [1, 2], 0)
    called = tf.function(table.lookup)

    def everywhere(x: Any) -> Any:
        many = tf.size(x) > 2
        y = tf.cond(many, lambda: table.lookup(x), lambda: called(x) + 1)
        z = tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y + table.lookup(x)), (0, y))
        w = tf.switch_case(tf.size(x) % 2, [lambda: table.lookup(x), lambda: called(x) * 3])
        return z[1] + w + tf.map_fn(table.lookup, x, fn_output_signature=tf.int32)

    module = hybrid.compile(everywhere, tf.TensorSpec([None], tf.string))
    for rows in range(5):
        words = tf.constant(WORDS)[:rows]
        np.testing.assert_array_equal(module(words), everywhere(words))


def test_modules_share_no_table(tmp_path: Path) -> None:
    """Nor do two of one file: each has made its own."""
    modules = []
    for value in (1, 2):
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a"], [value]), 0, name="one_name"
        )
        made = hybrid.compile(tf.function(table.lookup), tf.TensorSpec([1], tf.string))
        made.save(tmp_path / f"{value}.so")
        modules += [(value, made), (value, hybrid.load(tmp_path / f"{value}.so"))]
    modules.append((1, hybrid.load(tmp_path / "1.so")))
    for value, module in modules:
        assert module(["a"]).numpy().tolist() == [value]
    del modules[1:], table, made, module
    assert modules[0][1](["a"]).numpy().tolist() == [1]


def write_version_1(folder: Path, words: Path, *, is_mutable: bool) -> None:
    """A SavedModel as TensorFlow 1 wrote it: nodes find the table by its name."""
    v1, index = tf.compat.v1, tf.lookup.TextFileIndex
    with tf.Graph().as_default(), v1.Session() as session:
        text = v1.placeholder(tf.string, [None], "text")
        if is_mutable:
            table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
            filled = table.insert(["a", "b"], tf.constant([3, 4], tf.int64))
        else:
            read = tf.lookup.TextFileInitializer(
                str(words), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
            )
            table = v1.lookup.StaticHashTable(read, -1)
            filled = v1.tables_initializer()
        rows = v1.get_variable("rows", [6, 4], use_resource=not is_mutable)
        looked_up = tf.gather(rows, table.lookup(text) + 1)
        session.run([filled, v1.global_variables_initializer()])
        signature = v1.saved_model.predict_signature_def({"text": text}, {"y": looked_up})
        builder = v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {"serving_default": signature},
            main_op=filled,
            assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
        )
        builder.save()


@pytest.mark.parametrize("is_mutable", [False, True], ids=["static", "mutable"])
def test_models_of_version_1(is_mutable: bool, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a\nb\nc\n")
    write_version_1(tmp_path / "m", tmp_path / "words.txt", is_mutable=is_mutable)
    words = tf.constant([*WORDS, "c"])
    loaded = tf.saved_model.load(str(tmp_path / "m"))
    wanted = loaded.signatures["serving_default"](text=words)["y"]
    module = hybrid.compile(tmp_path / "m", deny=["GatherV2"])
    assert module.report is not None
    assert module.report.kept == (f"a table of {2 if is_mutable else 3} entries, string to int64",)
    assert module.report.parts[0].ops == {"LookupTableFindV2": 1, "AddV2": 1, "GatherV2": 1}
    np.testing.assert_array_equal(module(text=words)["y"], wanted)


def test_strings_are_drawn_from_the_tables_and_beside_them() -> None:
    table = static(["a", "b"], [1.0, 2.0], 0.25)
    seen: list[bytes] = []

    def noted(words: Any) -> Any:
        seen.extend(words.ravel().tolist())
        return words

    def looked_up(words: Any) -> Any:
        asked = tf.numpy_function(noted, [words], tf.string)
        return table.lookup(tf.ensure_shape(asked, [None]))

    module = hybrid.compile(looked_up, tf.TensorSpec([None], tf.string))
    assert module.report is not None
    assert module.report.deviation is not None
    assert {b"a", b"b"} < set(seen)
    assert len(set(seen)) > 2


def test_strings_of_a_model_without_tables_are_numbers_or_not_compared() -> None:
    spec = tf.TensorSpec([None], tf.string)
    report = hybrid.compile(tf.strings.to_number, spec).report
    assert report is not None
    assert report.deviation is not None
    report = hybrid.compile(lambda x: tf.io.decode_base64(x + "~"), spec).report
    assert report is not None
    assert report.deviation is None
    assert "takes no inputs as drawn: " in report.uncompared
