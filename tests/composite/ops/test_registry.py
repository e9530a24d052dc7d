"""The registry of ops: names, versions, gradients of their own, functions, libraries, one lock."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDefLibrary

from composite.ops import call, recorded
from composite.ops.library import Library
from composite.ops.registry import OwnGradient, Registry


@dataclass(eq=False)
class Op:
    """As much of an op as the registry looks at; it counts how often it is retired."""

    op_name: str
    digest: str
    composes: str = ""
    retired: int = 0

    def retire(self) -> None:
        self.retired += 1

    def get_config(self) -> dict[str, Any]:
        return {}


def op(op_name: str, digest: str, composes: str = "") -> Any:
    return Op(op_name, digest, composes)


@pytest.fixture
def registry() -> Registry:
    return Registry()


def test_a_name_stands_for_its_last_definition(registry: Registry) -> None:
    first, again, second = op("A", "1"), op("A", "1"), op("A", "2")
    assert registry.current("A") is None
    registry.define(first)
    assert [registry.current("A"), registry.version("1")] == [first, first]
    registry.define(again)
    assert [registry.current("A"), registry.version("1")] == [again, again]
    assert [first.retired, again.retired] == [0, 0]
    registry.define(second)
    assert [registry.current("A"), registry.version("1")] == [second, again]
    assert [first.retired, again.retired, second.retired] == [0, 1, 0]


def test_a_moment_has_a_version(registry: Registry) -> None:
    before = recorded.moment()
    assert not registry.digest_at("A")
    moments = []
    for digest in ("1", "2", "2", "1"):
        registry.define(op("A", digest))
        moments.append(recorded.moment())
    assert [registry.digest_at("A", one) for one in moments] == ["1", "2", "2", "1"]
    assert registry.digest_at("A", before) == "1"
    assert registry.digest_at("A") == "1"


def test_hooks_are_called_once_for_each_name(registry: Registry) -> None:
    seen: list[str] = []
    late: list[str] = []
    registry.on_new_name(seen.append)
    for name, digest in (("A", "1"), ("A", "2"), ("B", "3")):
        registry.define(op(name, digest))
    registry.on_new_name(late.append)
    registry.on_new_name(late.append)
    registry.define(op("C", "4"))
    assert seen == late == ["A", "B", "C"]


def test_a_hook_that_fails_is_not_called_for_the_name_again(registry: Registry) -> None:
    seen: list[str] = []

    def fail(op_name: str) -> None:
        seen.append(op_name)
        raise ValueError("TensorFlow has one already")

    registry.on_new_name(fail)
    with pytest.raises(ValueError, match="has one already"):
        registry.define(op("A", "1"))
    registry.define(op("A", "2"))
    assert seen == ["A"]


def test_an_own_gradient_belongs_to_a_version(registry: Registry) -> None:
    def gradient(_op: Any, upstream: Any) -> Any:
        return upstream

    first, second, third = op("A", "1"), op("A", "2"), op("A", "3")
    for one in (first, second, third):
        registry.define(one)
    registry.set_gradient("1", gradient)
    registry.refuse_gradient("2", "no")
    assert registry.own_gradient("1") == OwnGradient(gradient)
    assert registry.own_gradient("2") == OwnGradient(refusal="no")
    assert registry.own_gradient("3") is None
    assert [registry.overrides_gradient(one) for one in (first, second, third)] == [
        True, False, False,
    ]  # fmt: skip
    assert registry.underived() == ("1", "2")
    registry.set_gradient("2", gradient)
    assert registry.own_gradient("2") == OwnGradient(gradient, "no")


def test_a_foreign_gradient_belongs_to_a_name(registry: Registry) -> None:
    registry.note_foreign_gradient("A")
    registry.note_foreign_gradient("Unknown")
    for name, digest in (("A", "2"), ("A", "1"), ("B", "3")):
        registry.define(op(name, digest))
    assert registry.underived() == ("1", "2")
    assert registry.overrides_gradient(op("A", "2"))
    assert not registry.overrides_gradient(op("B", "3"))


def test_what_tensorflow_keeps_by_name_is_forgotten(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten: list[str] = []
    monkeypatch.setattr(recorded, "forget_forward_gradients", lambda: forgotten.append("forward"))
    monkeypatch.setattr(call, "forget_eager_kernels", lambda: forgotten.append("kernels"))
    registry.define(op("A", "1"))
    registry.define(op("A", "1"))
    assert forgotten == []
    registry.define(op("A", "2"))
    assert forgotten == ["forward"]
    registry.set_gradient("2", lambda *_: None)
    assert forgotten == ["forward"] * 2
    registry.define(op("B", "3", composes="Relu"))
    assert forgotten == ["forward"] * 2 + ["kernels"]


def function(name: str) -> FunctionDefLibrary:
    library = FunctionDefLibrary()
    library.function.add().signature.name = name
    return library


def test_a_function_is_made_known_once(registry: Registry) -> None:
    known: list[Any] = []
    first, again = function("f"), function("f")
    assert registry.define_function(first, known.append) is first
    assert registry.define_function(again, known.append) is first
    assert known == [first]
    assert registry.has_function("f")


def test_a_function_that_is_refused_is_not_kept(registry: Registry) -> None:
    def refuse(_: Any) -> None:
        raise tf.errors.InvalidArgumentError(None, None, "no such op")

    with pytest.raises(tf.errors.InvalidArgumentError):
        registry.define_function(function("f"), refuse)
    assert not registry.has_function("f")


def test_a_library_is_loaded_once(registry: Registry) -> None:
    loaded: list[Library] = []

    def load() -> Library:
        loaded.append(Library("lib", Path(), {}))
        return loaded[-1]

    assert registry.library("key", load) is registry.library("key", load) is loaded[0]
    assert registry.library("other", load) is loaded[1]
    with pytest.raises(OSError, match="gone"):
        registry.library("third", _fail)
    assert registry.library("third", load) is loaded[2]


def _fail() -> Library:
    raise OSError("gone")


def test_threads_define_one_after_the_other(registry: Registry) -> None:
    inside, most = 0, 0
    pause = threading.Event()

    def hook(_: str) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        pause.wait(0.005)
        inside -= 1

    registry.on_new_name(hook)
    ops = [op(f"A{i}", str(i)) for i in range(8)]
    threads = [threading.Thread(target=registry.define, args=(one,)) for one in ops]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert [registry.current(one.op_name) for one in ops] == ops


def test_a_reader_does_not_wait_for_a_library_that_is_loaded(registry: Registry) -> None:
    known = op("A", "1")
    registry.define(known)
    registry.set_gradient("1", lambda *_: None)
    found: list[Any] = []

    def read() -> None:
        found.extend([registry.current("A"), registry.digest_at("A"), registry.underived()])

    def load() -> Library:
        reader = threading.Thread(target=read)
        reader.start()
        reader.join(timeout=10)
        return Library("lib", Path(), {})

    registry.library("key", load)
    assert found == [known, "1", ("1",)]


def test_a_child_of_a_process_whose_threads_define_can_define(run_python: Any) -> None:
    assert run_python(FORK).stdout == "defined\n"


FORK = """
import os, signal, threading
from composite.ops.registry import OPS

held, done = threading.Event(), threading.Event()

def hold():
    with OPS.lock:
        held.set()
        done.wait()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)  # ends a child that waits for a lock that nobody will let go
    with OPS.lock:
        print("defined", flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
done.set()
thread.join()
assert status == 0, status
"""
