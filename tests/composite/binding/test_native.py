"""The binding of the runtime library, and what is said when it does not fit."""

import json
from importlib import metadata, util

import pytest
import tensorflow as tf

from composite.binding import native, tensorflow_version
from composite.binding.records import NodeDef, python_values, record


def test_the_runtime_answers():
    values = python_values(NodeDef.FromString(native.call("composite_version")))
    assert tensorflow_version.same_minor(values["tensorflow"], tf.__version__)
    assert values["abi"] >= 1


@pytest.mark.parametrize(
    ("name", "request_", "kind", "message"),
    [
        ("composite_expand", record(op="NoSuchComposite"), tf.errors.NotFoundError, "NoSuch"),
        ("composite_register", b"\xff\xff nonsense", tf.errors.InvalidArgumentError, "."),
        ("composite_expand", b"\xff\xff nonsense", tf.errors.InvalidArgumentError, "."),
        (
            "composite_parse_declaration",
            record(op="X", inputs=["x: nonsense"], attrs=[], outputs=[]),
            tf.errors.InvalidArgumentError,
            "x: nonsense",
        ),
    ],
)
def test_a_status_becomes_its_exception(name, request_, kind, message):
    with pytest.raises(kind, match=message):
        native.call(name, request_)


def test_a_library_of_another_tensorflow_is_refused_before_it_is_opened(tmp_path):
    stamp = tmp_path / "build_info.json"
    stamp.write_text(json.dumps({"tensorflow": "2.20.1"}))
    with pytest.raises(
        ImportError, match=r"built for TensorFlow 2\.20\.1, but 2\.21\.0 is running"
    ):
        native.check_stamp(stamp, "2.21.0")
    native.check_stamp(stamp, "2.20.9")


@pytest.mark.parametrize("content", ["", "{}", "[]", "nonsense"])
def test_a_stamp_that_says_nothing(tmp_path, content):
    stamp = tmp_path / "build_info.json"
    with pytest.raises(ImportError, match="make build"):
        native.check_stamp(stamp, "2.21.0")
    stamp.write_text(content)
    with pytest.raises(ImportError, match="make build"):
        native.check_stamp(stamp, "2.21.0")


def test_a_missing_library_says_how_to_build_it(monkeypatch):
    monkeypatch.setattr(native, "LIBRARY", "libmissing.so")
    with pytest.raises(ImportError, match=r"libmissing\.so is not in .*make build"):
        native.library_path()


def test_another_tensorflow_is_one_sentence(monkeypatch):
    minor = ".".join(tf.__version__.split(".")[:2])
    monkeypatch.setattr(metadata, "version", lambda _: "2.19.0")
    with pytest.raises(ImportError, match=rf"built for TensorFlow {minor}, but 2\.19\.0 is"):
        tensorflow_version.check()


def test_the_package_takes_the_tensorflow_that_it_was_built_for(tmp_path, monkeypatch):
    stamp = tmp_path / "build_info.json"
    monkeypatch.setattr(tensorflow_version, "stamp", lambda: stamp)
    for minor in tensorflow_version.MINORS:
        stamp.write_text(json.dumps({"tensorflow": f"{minor}.3"}))
        monkeypatch.setattr(metadata, "version", lambda _, minor=minor: f"{minor}.0rc1")
        tensorflow_version.check()
        monkeypatch.setattr(metadata, "version", lambda _: "2.20.0")
        with pytest.raises(ImportError, match=rf"built for TensorFlow {minor}, but 2\.20\.0 is"):
            tensorflow_version.check()


def test_no_tensorflow_is_one_sentence(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    monkeypatch.setattr(util, "find_spec", lambda _: None)
    with pytest.raises(ImportError, match="none is installed: pip install"):
        tensorflow_version.check()


def test_not_yet_is_told_from_other_failures():
    code = tf.errors.FAILED_PRECONDITION
    lacking = native.error(code + 256, "ops.py:7:5: the size of x")
    assert type(lacking) is tf.errors.FailedPreconditionError and "of x" in str(lacking)
    assert native.is_not_yet(lacking)
    assert not native.is_not_yet(native.error(code, "a model of a layer that is not yet: built"))
    assert not native.is_not_yet(ValueError("not yet"))
