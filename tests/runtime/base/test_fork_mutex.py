"""The child of a fork waits for no lock that a thread of its parent held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_CODE = """
import os
import signal
import threading

import tensorflow as tf

import composite
from composite.binding import native
from tests.composite.dense_ops import dense

inputs = [tf.ones(shape) for shape in ([3, 8], [4, 8], [4])]
dense(*inputs)
node = dense.request(*inputs).to_node_def()
done = threading.Event()

def ask():
    native.call("composite_explain", node)
    native.call("composite_expand", node)
    native.call("composite_pending")
    native.call("composite_worker")  # wakes those who wait, of whom there are none

def call():
    dense(*inputs)

def repeat(work):
    while not done.is_set():
        work()

threads = [threading.Thread(target=repeat, args=(work,)) for work in [ask] * 6 + [call] * 2]
for thread in threads:
    thread.start()
hung = 0
for _ in range(150):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        ask()
        os._exit(0)
    hung += os.waitpid(child, 0)[1] != 0
done.set()
for thread in threads:
    thread.join()
assert hung == 0, hung
"""


def test_children_of_a_process_whose_threads_are_at_work(run_python: Callable[..., Any]) -> None:
    run_python(_CODE, env={"COMPOSITE_JIT": "0"})
