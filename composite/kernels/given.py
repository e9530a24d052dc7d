"""Kernels that an author provides for a class of calls; they are checked as our own kernels are.

A kernel is a function of TVM's C ABI that takes the inputs and then the outputs as DLTensors. Its
machine code becomes a library in the cache. Then it is treated as every kernel: it is compared with
the body, installed, measured, and runs where it is no slower.

Not for: which calls (composite/aot/own_kernels.py).
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from composite.binding import native
from composite.binding.kernel_record import KernelRecord
from composite.binding.kernel_request import KernelRequest
from composite.compiler.tvm import Kernel, Target
from composite.compiler.tvm.link import linked
from composite.compiler.tvm.proof.result import Proof
from composite.kernels import (
    cache,
    cpu,
    produce,
    shapes,
    signatures,
    verdicts,
    verify,
)
from composite.kernels.expansions import expand
from composite.kernels.key import sha256
from composite.kernels.samples import Samples
from composite.measuring import decisions
from composite.ops import call, functions

_FUNCTIONS = re.compile(rb"\0__tvm_ffi_([A-Za-z]\w*)\0")  # in the symbol table of an object file


class Refused(ValueError):  # noqa: N818 - what becomes of a kernel
    """A kernel cannot serve the calls that it was provided for; the message says why."""


class Given(NamedTuple):
    """A kernel that was accepted.

    Attributes:
        record: the record by which it is dispatched.
        decision: where it was measured to be no slower.
        objects: its object files by name; empty if it was given as a shared library.
        image: the machine code of a kernel for a GPU.
    """

    record: KernelRecord
    decision: decisions.Decision
    objects: dict[str, bytes]
    image: bytes = b""


class _Source(NamedTuple):
    """The machine code of a function: a shared library, and its object files if there are any.

    `alignment`: the addresses of its tensors must be multiples of it; 0 means that of an element.
    """

    name: str
    library: bytes
    objects: dict[str, bytes]
    told: str
    alignment: int


def give(request: KernelRequest, source: Any, function: str | None) -> Given:
    """Checks a kernel for the calls of a request, installs and measures it.

    Args:
        request: the calls.
        source: a path of a shared library or an object file, or TVM's: a PrimFunc, an IRModule,
            what tvm.compile returned, a module of machine code, a function of te tensors.
        function: the name of the function; None if there is only one.

    Raises:
        Refused: the kernel computes something else than the body, does not take such tensors,
            or does not exist.
        TypeError: `source` is none of these.
    """
    out_shapes = output_shapes(request)  # raises if the body does not take such shapes
    found = _source(request, source, function)
    kernel = Kernel(
        name=found.name,
        objects=found.objects,
        out_shapes=out_shapes,
        minimums=[0] * len(shapes.symbols(request.in_shapes)),
        divisors=[1] * len(shapes.symbols(request.in_shapes)),
        strategy=f"yours: {found.told}",
        target=Target.host(),
        proof=Proof(0, 0, ()),
    )
    path = cache.open_default().store(sha256(found.library), b"", found.library)

    def check(oracle: verify.Oracle) -> verify.Accuracy:
        return oracle.check(path, kernel.name, alignment=found.alignment)

    with call.eager_mode(), refusing():
        accuracy = check(produce.oracle(request, kernel.minimums, kernel.divisors))
        record = cpu.record_of(request, kernel, kernel.target)
        record = replace(record, proof="not looked at", barriers=True, verdict="kernel")
        record = replace(record, alignment=found.alignment, minimums=minimums(request, check))
        record = produce.with_accuracy(record, request, accuracy)
        return Given(record, verdicts.measured_library(record, request, path), found.objects)


def minimums(
    request: KernelRequest, check: Callable[[verify.Oracle], verify.Accuracy]
) -> tuple[int, ...]:
    """The least size for each symbol: 0, or 1 if the kernel or the body fails for a size of 0.

    Many kernels do not handle sums over no elements. The body serves such calls.
    """
    names = shapes.symbols(request.in_shapes)
    found = []
    for empty in names:
        exact = shapes.substitute(request.in_shapes, {n: 0 if n == empty else 5 for n in names})
        samples = Samples(lambda dims: expand(request, dims), [exact], request.size_inputs)
        try:
            check(verify.Oracle(samples))
        except (verify.Mismatch, RuntimeError, ValueError, tf.errors.OpError):
            found.append(1)
        else:
            found.append(0)
    return tuple(found)


@contextmanager
def refusing() -> Iterator[None]:
    """Raises Refused for the errors of a check."""
    try:
        yield
    except verify.Mismatch as wrong:
        raise Refused(f"it is not what the body computes: {wrong}") from wrong
    except RuntimeError as wrong:
        raise Refused(str(wrong)) from wrong


def _source(request: KernelRequest, source: Any, function: str | None) -> _Source:
    if isinstance(source, str | Path):
        return _file(Path(source), function)
    tvm = sys.modules.get("tvm")  # only then can `source` be one of TVM's objects
    if tvm is not None:
        if isinstance(source, tvm.runtime.Executable | tvm.runtime.Module):
            return _executable(source, function)
        if callable(source) and not isinstance(source, sys.modules["tvm_ffi"].core.CObject):
            source = _of_tensors(tvm, request, source)
        if isinstance(source, tvm.ir.BaseFunc):
            # A unique name, since the symbols of a library must differ.
            function = f"{request.op}_{sha256(str(source).encode())[:16]}"
            source = tvm.IRModule({function: source.with_attr("global_symbol", function)})
        if isinstance(source, tvm.IRModule):
            function = function or _only([v.name_hint for v in source.functions])
            return _compiled(tvm, source, function)
    raise TypeError(
        f"{source!r} is no kernel: give the path of a shared library or an object file; or, of TVM,"
        " a PrimFunc, an IRModule, what tvm.compile returned, a module of machine code, or a "
        "function of te tensors. A packed function alone has no machine code: give its module"
    )


def _of_tensors(tvm: Any, request: KernelRequest, function: Any) -> Any:
    """The PrimFunc for a function of te tensors."""
    sizes = {name: tvm.te.var(name) for name in shapes.symbols(request.in_shapes)}
    exact = shapes.substitute(request.in_shapes, dict(zip(sizes, shapes.PROBES[0], strict=False)))
    dtypes = functions.body(expand(request, exact)).input_dtypes
    inputs = []
    for i, (dims, dtype) in enumerate(zip(request.in_shapes, dtypes, strict=True)):
        shape = [sizes[dim] if isinstance(dim, str) else dim for dim in dims]
        inputs.append(tvm.te.placeholder(shape, tf.as_dtype(dtype).name, f"in{i}"))
    made = function(*inputs)
    outputs = list(made) if isinstance(made, list | tuple) else [made]
    if not outputs or not all(isinstance(y, tvm.te.Tensor) for y in outputs):
        raise TypeError(f"{function!r} returns {made!r}, and no te tensor or list of them")
    return tvm.te.create_prim_func([*inputs, *outputs])


def _executable(source: Any, function: str | None) -> _Source:
    """Machine code from TVM, which relies on TVM's alignment of tensors."""
    module = getattr(source, "mod", source)
    if module.kind != "llvm" or module.imports:
        kinds = [one.kind for one in (module, *module.imports)]
        raise Refused(f"it is a module of {', '.join(kinds)}, and not of machine code for CPUs")
    with tempfile.TemporaryDirectory(prefix="composite-") as folder:
        path = Path(folder) / "kernel.o"
        module.write_to_file(str(path), "o")
        code = path.read_bytes()
        names = {name.decode() for name in _FUNCTIONS.findall(code)}
        # TVM uses this name for an only function as well.
        found = _file(path, function or _only(names - {"main"} or names), "compiled by TVM")
        return found._replace(alignment=signatures.ALIGNMENT)


def _compiled(tvm: Any, module: Any, function: str) -> _Source:
    target = tvm.target.Target(Target.host().tvm())
    made = tvm.compile(_of_any_address(tvm, module), target=target).mod
    with tempfile.TemporaryDirectory(prefix="composite-") as folder:
        path = Path(folder) / "kernel.o"
        made.write_to_file(str(path), "o")
        return _file(path, function, "a function of TVM")._replace(alignment=0)


def _of_any_address(tvm: Any, module: Any) -> Any:
    """The module without assumptions about alignment, since TensorFlow passes slices of tensors."""
    graph = json.loads(tvm.ir.save_json(module))
    for node in graph["nodes"]:
        if node["type"] == "tirx.BufferType":
            node["data"]["data_alignment"] = 1
    return tvm.ir.load_json(json.dumps(graph))


def _only(names: Collection[str]) -> str:
    if len(names) != 1:
        raise Refused(f"function= says which of its functions: {', '.join(sorted(names))}")
    return next(iter(names))


def _file(path: Path, function: str | None, told: str = "") -> _Source:
    if function is None:
        raise Refused(f"function= says which function of {path.name} it is")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there")
    content, objects = path.read_bytes(), {}
    of_tvm = signatures.signature(content, function) is not None
    told = f"{function}, {told or path.name}"
    if path.suffix == ".o":
        objects = {f"{function}.o": content}
        parts = Kernel(function, objects, [], [], [], "", Target.host(), Proof(0, 0, ()))
        content = linked(parts, native.library_path())
    return _Source(function, content, objects, told, signatures.ALIGNMENT if of_tvm else 0)


def output_shapes(request: KernelRequest) -> list[str]:
    """The dims of each output in postfix, inferred from the body at some sizes of symbols."""
    names = shapes.symbols(request.in_shapes)
    if len(names) > len(shapes.PROBES[0]):
        raise Refused(f"{len(names)} dims vary, and at most {len(shapes.PROBES[0])} may")
    cases = [dict(zip(names, sizes, strict=False)) for sizes in shapes.PROBES]
    found = [_shapes_at(request, values) for values in cases]
    return [
        ",".join(_postfix(axis, sizes, cases) for axis, sizes in enumerate(zip(*dims, strict=True)))
        for dims in zip(*found, strict=True)
    ]


def _shapes_at(request: KernelRequest, values: Mapping[str, int]) -> list[list[int]]:
    exact = shapes.substitute(request.in_shapes, values)
    try:
        source = functions.body(expand(request, exact))
        with tf.Graph().as_default():
            inputs = [
                tf.compat.v1.placeholder(dtype, shape)
                for dtype, shape in zip(source.input_dtypes, exact, strict=True)
            ]
            outputs = [tf.ensure_shape(y, y.shape) for y in functions.inline(source, inputs)]
    except (tf.errors.OpError, ValueError) as error:
        raise Refused(f"the body does not take {exact}: {error}") from error
    if not all(y.shape.is_fully_defined() for y in outputs):
        raise Refused("the shapes of the outputs depend on more than the shapes of the inputs")
    return [y.shape.as_list() for y in outputs]


def _postfix(axis: int, sizes: Sequence[int], cases: Sequence[Mapping[str, int]]) -> str:
    text = shapes.expression(sizes, cases)
    if text is None:
        raise Refused(
            f"dim {axis} of an output is no sum or product of dims of the inputs: state their sizes"
        )
    return text
