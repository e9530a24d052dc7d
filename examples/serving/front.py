"""gRPC's `Predict`, as TensorFlow Serving has it, in front of `serve` processes.

    python -m examples.serving.front PROGRAM LIBRARY NAME=FOLDER... [--port PORT]

PROGRAM is serve, LIBRARY a library of composite.build; each FOLDER has the versions of a model.
Messages and names are those of the package tensorflow-serving-api. TensorFlow is in this process
for its messages alone; models run in processes of their own, without Python.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from examples.serving.models import SIGNATURE, Model, Signature
from examples.serving.worker import Rows

_THREADS = 64  # calls that may wait at the same time


class Front(prediction_service_pb2_grpc.PredictionServiceServicer):
    """The service: what a client asks for, checked, to the model of that name."""

    def __init__(self, models: Mapping[str, Model]) -> None:
        self._models = models

    def Predict(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's name
        """The outputs for the rows of one input, with the version that gave them."""
        asked = request.model_spec
        try:
            version, answer = self._model(asked.name).submit(partial(_rows, request))
            outputs = answer.result()
        except LookupError as error:
            context.abort(grpc.StatusCode.NOT_FOUND, str(error))
        except ValueError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except ChildProcessError as error:
            context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        response = predict_pb2.PredictResponse()
        response.model_spec.name = asked.name
        response.model_spec.version.value = version.number
        response.model_spec.signature_name = SIGNATURE
        response.outputs[version.signature.output].CopyFrom(tf.make_tensor_proto(outputs))
        return response

    def _model(self, name: str) -> Model:
        if name not in self._models:
            known = ", ".join(sorted(self._models))
            raise LookupError(f"there is no model {name!r}: {known}")
        return self._models[name]


def _rows(request: Any, signature: Signature) -> Rows:
    """The input of a request. ValueError, with what is wanted, where it is none of the model's."""
    spec = request.model_spec
    if spec.signature_name not in ("", SIGNATURE) or spec.WhichOneof("version_choice"):
        raise ValueError(f"only the latest version's signature {SIGNATURE} is served")
    if list(request.inputs) != [signature.input]:
        raise ValueError(f"the input is {signature.input!r}, not {sorted(request.inputs)}")
    if not set(request.output_filter) <= {signature.output}:
        raise ValueError(f"the output is {signature.output!r}, not {list(request.output_filter)}")
    given = request.inputs[signature.input]
    dims = [dim.size for dim in given.tensor_shape.dim]
    if given.dtype != tf.float32 or dims[1:] != [signature.columns] or dims[0] < 1:
        wanted = f"float32[rows, {signature.columns}]"
        raise ValueError(
            f"{signature.input} is {wanted}, not {tf.as_dtype(given.dtype).name}{dims}"
        )
    return tf.make_ndarray(given)


def main() -> None:
    """Serves until SIGTERM or SIGINT; prints the port first."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("library", type=Path)
    parser.add_argument("models", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--port", type=int, default=0, help="0: any that is free")
    asked = parser.parse_args()
    ended = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    models = {}
    for name, _, folder in (model.partition("=") for model in asked.models):
        models[name] = Model(name, Path(folder), asked.program, asked.library)
    server = grpc.server(ThreadPoolExecutor(_THREADS))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Front(models), server)
    port = server.add_insecure_port(f"127.0.0.1:{asked.port}")
    server.start()
    print(f"port {port}", flush=True)
    ended.wait()
    server.stop(grace=None).wait()
    for model in models.values():
        model.close()


if __name__ == "__main__":
    main()
