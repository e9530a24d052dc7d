"""Ops under TensorFlow's own engines: strategies, DTensor, a cluster of processes, tf.data service.

One worker has the ops, another nothing of this package; both are processes of their own.
"""

from __future__ import annotations

import json
from typing import Any

# What all scripts begin with, before TensorFlow has started any thread.
BEGIN = """
import json, os, sys
import numpy as np
import tensorflow as tf
from tests.composite.cluster_processes import Process

X = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(4, 3)
W = np.eye(3, dtype=np.float32) * 0.5

def by_hand(x, w):
    return tf.math.softplus(tf.matmul(x, w)) * 2.0

def loss_and_slope(f, x, w):
    with tf.GradientTape() as tape:
        tape.watch(w)
        y = tf.reduce_sum(f(x, w))
    return y, tape.gradient(y, w)

def step_of(f, strategy, w):
    @tf.function
    def step(batch):
        def replica(batch):
            loss, slope = loss_and_slope(f, batch, w)
            slope = tf.distribute.get_replica_context().all_reduce("sum", slope)
            w.assign_sub(slope)
            return loss
        return strategy.reduce("sum", strategy.run(replica, (batch,)), None)
    return step

def expected():
    return [value.numpy() for value in loss_and_slope(by_hand, tf.constant(X), tf.constant(W))]

def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
"""

LOGICAL = """
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
import composite
from tests.composite.cluster_ops import dense
"""


def test_mirrored_strategy_on_logical_devices(run_python: Any) -> None:
    run_python(
        BEGIN
        + LOGICAL
        + """
strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
with strategy.scope():
    w = tf.Variable(W)
data = tf.data.Dataset.from_tensor_slices(X).batch(4)

step = step_of(dense, strategy, w)
(loss,) = [step(batch) for batch in strategy.experimental_distribute_dataset(data)]
wanted = expected()
close(loss, wanted[0])
for replica in strategy.experimental_local_results(w):
    close(replica, W - wanted[1])
"""
    )


def test_dtensor_layouts(run_python: Any) -> None:
    run_python(
        BEGIN
        + LOGICAL
        + """
from tensorflow.experimental import dtensor

mesh = dtensor.create_mesh([("batch", 2)], devices=["CPU:0", "CPU:1"])
whole = dtensor.Layout.replicated(mesh, 2)
rows = dtensor.Layout(["batch", dtensor.UNSHARDED], mesh)
x = dtensor.relayout(dtensor.copy_to_mesh(X, whole), rows)
w = dtensor.DVariable(dtensor.copy_to_mesh(W, whole))
wanted = by_hand(X, W).numpy()

def halves(y):
    return [part.numpy() for part in dtensor.unpack(y)]

with composite.options(portable=True):
    for function in (dense, tf.function(dense)):
        y = function(x, w.read_value())
        assert dtensor.fetch_layout(y) == rows, dtensor.fetch_layout(y)
        close(halves(y), [wanted[:2], wanted[2:]])
    step = tf.function(lambda x: loss_and_slope(dense, x, w))
    loss, slope = step(x)
assert dtensor.fetch_layout(slope) == whole
close(halves(loss)[0], expected()[0])
for half in halves(slope):
    close(half, expected()[1])
try:
    tf.function(lambda x: dense(x, w.read_value()))(x)
except tf.errors.OpError as error:
    assert "'tf.ClusterDense' op does not implement layout propagation" in error.message
else:
    raise AssertionError("DTensor has a rule for composites")
"""
    )


def test_datasets_that_are_written_to_files(run_python: Any) -> None:
    run_python(
        BEGIN
        + """
import composite
from tests.composite.cluster_ops import dense

wanted = by_hand(X, W).numpy()
data = tf.data.Dataset.from_tensor_slices(X).map(lambda row: dense(row[None], W)[0])
data.save("saved")
for read in (tf.data.Dataset.load("saved"), data.snapshot("snapshot"), data.snapshot("snapshot")):
    close(list(read.as_numpy_iterator()), wanted)
"""
    )


# Two workers: the first has imported the ops, the second has nothing of the package.
WORKERS = """
service = tf.data.experimental.service

def serve(jobs, modules):
    def run(process):
        for module in modules:
            __import__(module)
        assert modules or not any(name == "composite" for name in sys.modules)
        servers = [
            tf.distribute.Server({job: {task: "localhost:0"}}, job_name=job, task_index=task)
            for job, task in jobs
        ]
        process.send([server.target.removeprefix("grpc://") for server in servers])
        dispatcher = process.receive()
        config = service.WorkerConfig(dispatcher_address=dispatcher, heartbeat_interval_ms=100)
        servers.append(service.WorkerServer(config))
        process.send("up")
        return servers
    return run

having = Process(serve([("worker", 0)], ["tests.composite.cluster_ops"]))
lacking = Process(serve([("worker", 1), ("ps", 0)], []))
import composite
from tests.composite.cluster_ops import dense, scale
"""


def test_workers_with_the_op_and_without(run_python: Any) -> None:
    done = run_python(
        BEGIN
        + WORKERS
        + """
told = {}

def refused(what, call):
    try:
        call()
    except tf.errors.OpError as error:
        told[what] = error.message

# tf.data service: of two dispatchers one has each worker.
(first,), (second, ps) = having.receive(), lacking.receive()
dispatchers = [service.DispatchServer() for _ in range(2)]
addresses = [one.target.partition("://")[2] for one in dispatchers]
for process, address in zip((having, lacking), addresses):
    process.send(address)
    assert process.receive() == "up"

def dataset(address):
    data = tf.data.Dataset.from_tensor_slices(X).map(lambda row: dense(row[None], W)[0])
    data = data.apply(service.distribute("parallel_epochs", "grpc://" + address))
    return np.array(list(data.as_numpy_iterator()))

wanted = by_hand(X, W).numpy()
close(dataset(addresses[0]), wanted)
with composite.options(portable=True):
    close(dataset(addresses[1]), wanted)
refused("tf.data service", lambda: dataset(addresses[1]))

# Parameter servers, whose variables are where the op is not.
def scaled(x, w):
    return loss_and_slope(lambda x, w: scale(dense(x, w)), x, w)

nodes = [value.numpy() for value in tf.function(scaled)(tf.constant(X), tf.constant(W))]
spec = tf.train.ClusterSpec({"worker": [first, second], "ps": [ps]})
strategy = tf.distribute.ParameterServerStrategy(
    tf.distribute.cluster_resolver.SimpleClusterResolver(spec, rpc_layer="grpc")
)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    w = tf.Variable(W)

def slope(x):
    return scaled(x, w.read_value())

with composite.options(portable=True):
    step = tf.function(slope)
    scheduled = [coordinator.schedule(step, args=(tf.constant(X),)) for _ in range(4)]
    coordinator.join()
for result in scheduled:
    for found, here in zip(result.fetch(), nodes):
        close(found, here)

# Eager calls and functions on the devices of a worker.
def on(task, function):
    with tf.device(f"/job:worker/replica:0/task:{task}/device:CPU:0"):
        y = function()
        assert f"task:{task}" in y.device, y.device
        return y.numpy()

calls = {"eager": lambda: dense(X, W), "function": lambda: tf.function(dense)(X, W)}
for name, call in calls.items():
    close(on(0, call), wanted)
    with composite.options(portable=True):
        close(on(1, call), wanted)
refused("eager", lambda: on(1, calls["eager"]))

print(json.dumps(told))
sys.stdout.flush()
for process in (having, lacking):
    process.end()
os._exit(0)  # TensorFlow's threads of a cluster that has gone
"""
    )
    told = json.loads(done.stdout.strip().splitlines()[-1])
    assert set(told) == {"tf.data service", "eager"}
    assert all("ClusterDense" in message and "registered" in message for message in told.values())


MULTI_WORKER = """
from tests.composite.cluster_processes import of_workers

def train(task, process):
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    from tests.composite.cluster_ops import dense
    with strategy.scope():
        w = tf.Variable(W)

    step = step_of(dense, strategy, w)
    loss = step(tf.constant(X[2 * task : 2 * task + 2]))
    process.send([float(loss), w.numpy().tolist()])

found = of_workers(train)
assert len(found) == 2
wanted = expected()
for loss, w in found:
    close(loss, wanted[0])
    close(np.float32(w), W - wanted[1])
"""


def test_multi_worker_mirrored_strategy_in_two_processes(run_python: Any) -> None:
    run_python(BEGIN + MULTI_WORKER)
