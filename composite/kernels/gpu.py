"""Kernels for GPUs: their records, and calls outside of graphs for checks.

The runtime opens the driver and runs the launches of the record's plan, as it does in a graph
(composite/runtime/api/gpu_c_api.h).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from composite.binding import native
from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.binding.records import serialize
from composite.compiler.tvm.cuda.build import CudaKernel
from composite.kernels import host, verify
from composite.kernels.samples import Sample
from composite.progress import activity
from composite.reference.source import Arithmetic

Array = np.ndarray[Any, Any]

ARITHMETIC = Arithmetic(keeps_denormals=True)
"""That of GPUs, but for TF32, which TensorFlow's switch allows or not."""


class Missing(RuntimeError):  # noqa: N818 - says what there is not
    """This process has no GPU of a kernel's level, or no driver."""


class _Call(ctypes.Structure):
    """composite_gpu_call."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("record", ctypes.c_char_p),
        ("record_size", ctypes.c_size_t),
        ("image", ctypes.c_char_p),
        ("image_size", ctypes.c_size_t),
        ("arguments", ctypes.POINTER(host.Argument)),
        ("count", ctypes.c_size_t),
    ]


def record_of(request: KernelRequest, kernel: CudaKernel, *, tuned: bool) -> KernelRecord:
    """The record by which the runtime dispatches and launches the kernel."""
    plan: dict[str, Any] = kernel.plan.fields()
    return KernelRecord(
        op=request.op,
        name=kernel.name,
        attrs=request.attrs,
        program=request.program,
        in_shapes=request.in_shapes,
        size_inputs=request.size_inputs,
        out_shapes=tuple(kernel.out_shapes),
        minimums=tuple(kernel.minimums),
        barriers=False,
        isa=kernel.target.isa,
        target=kernel.target.key,
        device=request.device,
        verdict="unmeasured",
        strategy=f"{kernel.strategy} (tuned)" if tuned else kernel.strategy,
        **plan,
    )


def check(oracle: verify.Oracle, record: KernelRecord, image: bytes) -> verify.Accuracy:
    """Checks a kernel on the samples of an oracle. Raises verify.Mismatch, and as `call`.

    The expansion runs on the CPU, so its exact bits on the GPU are unknown.
    """
    if not is_here(record.device):
        raise Missing(f"TensorFlow has no GPU of {record.device}")

    activity.step("check")

    def results(sample: Sample) -> Iterator[tuple[int, list[Array]]]:
        yield 1, call(record, image, sample.inputs, sample.expected)

    return oracle.compare(results)._replace(same_bits=False)


def call(
    record: KernelRecord, image: bytes, inputs: Sequence[Array], like: Sequence[Array]
) -> list[Array]:
    """Runs a kernel on the GPU of its level. The outputs have the shapes and dtypes of `like`.

    Raises verify.Mismatch if it writes outside of them, Missing or RuntimeError if it cannot run.
    """
    outputs = [np.full(y.shape, 77, y.dtype) for y in like]
    # np.ascontiguousarray would turn a scalar into a vector.
    arrays = [*(np.asarray(x, order="C") for x in inputs), *outputs]
    arguments = (host.Argument * len(arrays))(*map(host.argument, arrays))
    content = serialize(record.to_node_def())
    asked = _Call(
        ctypes.sizeof(_Call), content, len(content), image, len(image), arguments, len(arrays)
    )
    try:
        native.invoke(native.library().composite_call_gpu_kernel, ctypes.byref(asked))
    except tf.errors.DataLossError as error:
        raise verify.Mismatch(error.message) from error
    except tf.errors.FailedPreconditionError as error:
        raise Missing(error.message) from error
    except tf.errors.OpError as error:
        raise RuntimeError(error.message) from error
    return outputs


def device_name(device: str) -> str:
    """TensorFlow's name of the first GPU of a level such as "cuda:sm_80"."""
    return f"GPU:{next(_numbers(device), 0)}"


def is_here(device: str) -> bool:
    """Whether TensorFlow may have a GPU of a level; it knows few levels of plugin devices."""
    return next(_numbers(device), None) is not None


def _numbers(device: str) -> Iterator[int]:
    if not device.startswith("cuda:sm_"):  # PTX, for levels that do not exist yet
        return
    level = device.removeprefix("cuda:sm_")
    for number, physical in enumerate(tf.config.list_physical_devices("GPU")):
        known = details(physical).get("compute_capability")
        if known is None or "".join(map(str, known)) == level:
            yield number


def details(physical: Any) -> dict[str, Any]:
    """What TensorFlow knows about a GPU, which is little for a plugin device."""
    return dict(tf.config.experimental.get_device_details(physical))


def model(device: str) -> str:
    """The model of the GPU that times are valid for, if it is known."""
    number = int(device_name(device).removeprefix("GPU:"))
    found = tf.config.list_physical_devices("GPU")
    name = details(found[number]).get("device_name", "") if number < len(found) else ""
    return f"{device} {name}".strip()
