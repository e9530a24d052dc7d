"""What a node with a kernel on a GPU costs the host, beside a stock op there."""

from __future__ import annotations

import json

import pytest

from tests.conftest import RunPython
from tests.gpu.devices import with_kernels

# The test device holds all kernels back while the host gives them out, so that no thread computes
# but those that give them out: the time of the process is theirs.
_MEASURE = """
import json, time
import numpy as np
import tensorflow as tf
import composite
from composite import Composite
from tests.gpu.devices import GPU, Devices, build
from tests.unmeasured import kernels_serve

@Composite("GpuNodeCost", inputs=["x: float"], outputs=["y: float"])
def cost(x):
    return tf.tanh(x) * 0.5

devices = Devices(build())
NODES, TURNS = 200, 31
with tf.device(GPU), kernels_serve():
    x = tf.ones([8])
    cost(x)
    assert composite.wait(60)

def chain(op):
    @tf.function
    def run(x):
        with tf.device(GPU):
            for _ in range(NODES):
                x = op(x)
            return x
    return run.get_concrete_function(x)

def seconds(run):
    with devices.held():
        begin = time.process_time()
        y = run(x)
        took = time.process_time() - begin
    y.numpy()
    return took / NODES

ours, stock = chain(cost), chain(tf.tanh)
np.testing.assert_allclose(cost(x), np.tanh(np.ones(8)) * 0.5, rtol=1e-6)
for run in (ours, stock):
    seconds(run)
before = devices.kernels(), devices.launches("Tanh")
turns = [(seconds(ours), seconds(stock)) for _ in range(TURNS)]
launched = devices.kernels() - before[0], devices.launches("Tanh") - before[1]
assert launched == (NODES * TURNS, NODES * TURNS), launched
node, stock_node = np.median(turns, 0) * 1e6
above = float(np.median([a - b for a, b in turns])) * 1e6
print(json.dumps({"node_us": node, "stock_us": stock_node, "above_us": above}))
"""

_MOST_US = 5.0


@pytest.mark.timed
@pytest.mark.slow
def test_a_node_costs_the_host_little_more_than_a_stock_op(run_python: RunPython) -> None:
    done = run_python(_MEASURE, env=with_kernels())
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["above_us"] <= _MOST_US, found
