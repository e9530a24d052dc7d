"""Does a task: the one place that calls the compiler, whichever process it is in."""

from __future__ import annotations

import functools
import hashlib
import traceback
from typing import Any

from composite.compiler import account
from composite.compiler import tvm as backend
from composite.compiler.tvm.cuda import nvrtc
from composite.compiler.tvm.cuda.build import write_cuda
from composite.compiler.tvm.target import CudaTarget
from composite.compiler_process import tasks
from composite.compiler_process.messages import Message
from composite.compiler_process.tasks import Loops, Made, Task, failed


def answer(asked: Message) -> Message:
    """The answer to a task, with how long its steps took. Whatever the compiler raises is one."""
    with account.apart() as steps:
        try:
            found = perform(Task.of(asked)).message()
        except Exception as error:  # noqa: BLE001 - the answer says what was raised
            found = failed(error, traceback.format_exc())
    return tasks.with_steps(found, steps)


def perform(task: Task) -> Made:
    """Write the loops of a kernel, and compile and link it as far as the task says."""
    if isinstance(task.target, CudaTarget):
        return _for_gpu(task, task.target)
    written = _written(
        task.function,
        task.schema,
        tuple(tuple(shape) for shape in task.in_shapes),
        task.target,
        tuple(task.sizes),
        tuple(task.constants),
        tuple(sorted(task.choices.items())),
    )
    loops = Loops(written.digest, written.knobs, written.choices)
    if not task.name:
        return Made(loops)
    kernel = written.generate(task.name, over_ring=task.over_ring)
    if not task.link:
        return Made(loops, kernel)
    with account.step("link"):
        return Made(loops, kernel, backend.linked(kernel, task.runtime or None))


def _for_gpu(task: Task, target: CudaTarget) -> Made:
    with account.step("schedule"):
        kernel = write_cuda(
            _library_class(task.schema).FromString(task.function),
            task.in_shapes,
            target=target,
            name=task.name or "kernel",
            sizes=task.sizes,
            choices=task.choices,
        )
    digest = hashlib.sha256(kernel.source.encode()).hexdigest()[:16]
    loops = Loops(digest, kernel.knobs, dict(task.choices))
    if not task.name:
        return Made(loops)
    if not task.link:
        return Made(loops, kernel)
    with account.step("generate"):
        code = nvrtc.image(kernel.source, target.isa, is_portable=target.is_portable)
    return Made(loops, kernel, code)


@functools.lru_cache(maxsize=2)  # whoever compares loops asks for the code of one of them next
def _written(  # noqa: PLR0913, PLR0917 - a task without what is done with the loops
    function: bytes,
    schema: bytes,
    in_shapes: Any,
    target: Any,
    sizes: Any,
    constants: Any,
    choices: Any,
) -> backend.Written:
    return backend.write(
        _library_class(schema).FromString(function),
        in_shapes,
        target=target,
        sizes=sizes,
        constants=constants,
        choices=dict(choices),
    )


@functools.lru_cache(maxsize=2)
def _library_class(schema: bytes) -> Any:
    """FunctionDefLibrary, made of its declaration in a pool of its own."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(schema).file:
        pool.Add(file)
    declared = pool.FindMessageTypeByName("tensorflow.FunctionDefLibrary")
    return message_factory.GetMessageClass(declared)
