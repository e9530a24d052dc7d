"""Regions in the processes of a cluster: workers that train together, parameter servers, Beam.

A process forms the regions of what it runs; processes with one cache compile each kernel once.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tests import beam
from tests.conftest import ROOT

pytestmark = pytest.mark.slow  # several processes load TensorFlow, and compile

COMPILED = re.compile(r"kernel (\w+) compiled in")


def compiled(log: str) -> list[str]:
    """The kernels that the processes compiled, by the lines in their log."""
    return COMPILED.findall(log)


WORKERS = """
import json
import numpy as np
import tensorflow as tf
from tests.composite.cluster_processes import of_workers

X = np.random.default_rng(0).standard_normal((16, 6)).astype(np.float32)
Y = np.random.default_rng(1).standard_normal((16, 4)).astype(np.float32)

def train(regions):
    def run(task, process):
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        import composite, keras
        keras.utils.set_random_seed(3)
        layers = keras.layers
        with strategy.scope():
            model = keras.Sequential([
                keras.Input((6,)), layers.Dense(8, "tanh"), layers.BatchNormalization(),
                layers.LayerNormalization(), layers.Dense(4),
            ])
            optimizer = keras.optimizers.Adam(0.01)
            optimizer.build(model.trainable_variables)
        data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
        data = strategy.experimental_distribute_dataset(data)

        def replica(batch):
            x, y = batch
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
            slopes = tape.gradient(loss, model.trainable_variables)
            optimizer.apply(slopes, model.trainable_variables)
            return loss

        step = tf.function(
            lambda batch: strategy.reduce("mean", strategy.run(replica, (batch,)), None)
        )
        losses = []
        for _ in range(4):
            with composite.options(regions=regions):
                losses += [float(step(batch)) for batch in data]
            composite.wait()
        process.send({
            "losses": losses,
            "weights": [weight.tolist() for weight in model.get_weights()],
            **{name: composite.stats()[name] for name in ("kernel_launches", "invalid_graphs")},
        })
    return run

print(json.dumps([of_workers(train(regions)) for regions in (False, True)]))
"""


def test_two_workers_train_with_regions(run_python: Any, tmp_path: Path) -> None:
    own = {"COMPOSITE_CACHE_DIR": str(tmp_path / "cache"), "COMPOSITE_LOG": "info"}
    done = run_python(WORKERS, env=own)
    plain, with_regions = json.loads(done.stdout.splitlines()[-1])
    for worker, wanted in zip(with_regions, plain, strict=True):
        np.testing.assert_allclose(worker["losses"], wanted["losses"], rtol=1e-4)
        for one, other in zip(worker["weights"], wanted["weights"], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
        assert worker["kernel_launches"] > 4
        assert worker["invalid_graphs"] == 0
    kernels = compiled(done.stderr)
    assert kernels
    assert len(kernels) == len(set(kernels)), "each is compiled once, by one of the workers"


SERVERS = """
import json, os, sys
import numpy as np
import tensorflow as tf
from tests.composite.cluster_processes import Process

X = np.linspace(-1.0, 1.0, 48, dtype=np.float32).reshape(8, 6)

def serve(job, module):
    def run(process):
        if module:
            __import__(module)
        server = tf.distribute.Server({job: ["localhost:0"]}, job_name=job, task_index=0)
        process.send(server.target.removeprefix("grpc://"))
        while True:
            process.receive()
            launches = 0
            if module:
                import composite
                composite.wait()
                launches = composite.stats()["kernel_launches"]
            process.send(launches)
    return run

worker, server = Process(serve("worker", sys.argv[1])), Process(serve("ps", ""))
spec = tf.train.ClusterSpec({"worker": [worker.receive()], "ps": [server.receive()]})
strategy = tf.distribute.ParameterServerStrategy(
    tf.distribute.cluster_resolver.SimpleClusterResolver(spec, rpc_layer="grpc")
)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    weights = [tf.Variable(tf.ones([6, 5]) * 0.25), tf.Variable(tf.ones([5, 3]) * 0.5)]

def loss_of(x, a, b):
    hidden = tf.tanh(tf.matmul(x, a))
    return tf.reduce_mean(tf.square(tf.nn.softmax(tf.matmul(hidden * hidden + hidden, b)) - 0.1))

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = loss_of(x, *weights)
    for weight, slope in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(slope * 0.5)
    return loss

losses, launches = [], []
for _ in range(4):
    scheduled = coordinator.schedule(step, args=(tf.constant(X),))
    coordinator.join()
    losses.append(float(scheduled.fetch()))
    worker.send("wait")
    launches.append(worker.receive())

by_hand = [tf.Variable(tf.ones([6, 5]) * 0.25), tf.Variable(tf.ones([5, 3]) * 0.5)]
for loss in losses:
    with tf.GradientTape() as tape:
        wanted = loss_of(X, *by_hand)
    np.testing.assert_allclose(loss, wanted, rtol=1e-5)
    for weight, slope in zip(by_hand, tape.gradient(wanted, by_hand)):
        weight.assign_sub(slope * 0.5)
print(json.dumps(launches))
sys.stdout.flush()
for process in (worker, server):
    process.end()
os._exit(0)  # TensorFlow's threads of a cluster that has gone
"""


@pytest.mark.parametrize("module", ["composite", ""])
def test_steps_of_parameter_servers_have_regions_where_workers_do(
    module: str, run_python: Any
) -> None:
    done = run_python(SERVERS, module, env={"COMPOSITE_REGIONS": "1"})
    launches = json.loads(done.stdout.splitlines()[-1])
    assert launches[0] == 0
    assert (launches[-1] > 0) == bool(module)


BEAM = """
import json, os, sys, time
import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

class Predict(beam.DoFn):
    def __init__(self, model):
        self._path = model

    def setup(self):
        import composite, keras, numpy
        self._x = numpy.ones((8, 16), numpy.float32)
        self._model = keras.models.load_model(self._path)
        self._fast = composite.accelerate(self._model, self._x)

    def process(self, number):
        import composite, numpy
        x = self._x * number
        difference = numpy.abs(self._fast(x).numpy() - self._model(x).numpy()).max()
        time.sleep(0.5)  # so that each worker gets some
        yield os.getpid(), float(difference), composite.stats()["kernel_launches"]

if __name__ == "__main__":
    with beam.Pipeline(options=PipelineOptions(sys.argv[2:])) as pipeline:
        (
            pipeline | beam.Create(range(16)) | beam.Reshuffle() | beam.ParDo(Predict(sys.argv[1]))
            | beam.combiners.ToList() | beam.Map(lambda all: print(json.dumps(all), flush=True))
        )
"""


@pytest.mark.skipif(not beam.is_there, reason=beam.MISSING)
def test_workers_of_beam_compile_each_kernel_once(tmp_path: Path) -> None:
    layers = keras.layers
    model = keras.Sequential(
        [keras.Input((16,)), layers.Dense(32, "gelu"), layers.LayerNormalization(), layers.Dense(8)]
    )
    model.save(tmp_path / "model.keras")
    (tmp_path / "pipeline.py").write_text(BEAM)
    workers = ["--runner=FnApiRunner", "--direct_running_mode=multi_processing"]
    own = {"COMPOSITE_CACHE_DIR": str(tmp_path / "cache"), "COMPOSITE_LOG": "info"}
    done = subprocess.run(
        [beam.PYTHON, tmp_path / "pipeline.py", tmp_path / "model.keras", *workers,
         "--direct_num_workers=2"],
        cwd=ROOT, env=os.environ | own | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    print(done.stderr[-3000:])
    made = json.loads(done.stdout.splitlines()[-1])
    assert len(made) == 16
    assert len({process for process, _, _ in made}) > 1
    for _, difference, launches in made:
        assert difference < 1e-4
        assert launches > 0
    kernels = compiled(done.stderr)
    assert kernels
    assert len(kernels) == len(set(kernels)), "each is compiled once, by one of the workers"
