"""What a cached kernel's key depends on, and what it does not."""

import pytest
import tensorflow as tf

from composite.binding.kernel_request import KernelRequest
from composite.binding.records import record
from composite.kernels import key

BASE = {
    "act": "RELU",
    "T": tf.float32,
    "_composite_program": "abc",
    "_in_shapes": [tf.TensorShape([2, 3])],
}


def entry(target="x86-64-v3-2", **changes):
    return key.entry_key(KernelRequest.parse(record(op="Op", **(BASE | changes))), target)


@pytest.mark.parametrize(
    "changes",
    [
        {"act": "TANH"},
        {"T": tf.float64},
        {"_composite_program": "abd"},
        {"_in_shapes": [tf.TensorShape([2, 4])]},
        {"target": "x86-64-v4-2"},
    ],
)
def test_what_it_depends_on(changes):
    assert entry(**changes) != entry()


def test_what_it_does_not_depend_on():
    assert entry(_must=True, _hint=[3]) == entry()
    renamed = KernelRequest.parse(record(op="Op", name="ticket 7", **BASE))
    assert key.entry_key(renamed, "x86-64-v3-2") == entry()


def test_another_compiler_is_another_key(monkeypatch):
    before = entry()
    monkeypatch.setattr(key, "toolchain", lambda: (("apache-tvm", "0.99"),))
    assert entry() != before


def test_the_toolchain_names_versions():
    names = [name for name, _ in key.toolchain()]
    assert names[:3] == ["compiler", "apache-tvm", "apache-tvm-ffi"]
    assert len(key.machine()) == 12
