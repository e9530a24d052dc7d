"""Measures a kernel against what TensorFlow would run instead, on the node's own terms.

Both are measured as nodes of a graph. One function holds enough copies of the op to be timed. They
run one after the other, and each has its own inputs, since a real model does not read the same
weights again. The nodes run the kernel in one function and the expansion in another, where grappler
fuses the ops as it fuses hand-written ones. The time of an empty function with the same signature
is subtracted, so the result contains no Python. Constant inputs are constants of the graph too.
Large constants of a kernel, which takes them packed, are inputs that are marked as constant
instead, since TensorFlow copies graphs many times.

If both are limited by memory, their times are equal; inputs that fit into the caches then show the
difference.

On a GPU, a run ends when the device has finished. So the time of a node is that of the device or of
the host, whichever is longer, as in a model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

from composite.binding.records import BACKEND, CONSTANTS, NUMERICS, UNCOUNTED, AttrValue
from composite.compiler import account
from composite.kernels import rounds, turns
from composite.kernels.decisions import Times
from composite.ops import call

HOST = "CPU:0"
Sizes = Mapping[int, int]
"""By the position of an input that is a scalar, its value."""

# Other values for integers that are drawn as 0 and 1.
_ANY, _ONES, _ZEROS = (lambda x: x), (lambda x: x | 1), (lambda x: x * 0)
_BELOW_ONE = lambda x: abs(x) % 1  # noqa: E731
# Values of integers and of floating numbers, tried in turn until the ops accept them. The ops may
# divide by a zero; but 0 is the only index into a dim of size 1, and floats may be cast to indices.
_NUMBERS = ((_ANY, _ANY), (_ONES, _ANY), (_ZEROS, _ANY), (_ZEROS, _BELOW_ONE))

_COPIES = 16
_CHAIN = 0.002  # seconds: there are no more copies than take this long
_MEMORY = 64 << 20  # the most bytes of inputs
_CACHED_MEMORY = 4 << 20
# The most bytes of constants of several nodes: tracing and grappler copy them several times, and
# TensorFlow keeps functions until the process ends.
_CONSTANTS = 4 << 20
# Bytes of a constant from which on passing it takes no time compared with the kernel.
_LARGE = 1 << 20
# For sizes other than the requested one:
_SWEEP_COPIES = 8
_SWEEP_MEMORY = 16 << 20
_SWEEP_BUDGET = 0.03


@account.step("measure")
def measure(  # noqa: PLR0913, PLR0917 - a call, and where it is measured
    op_name: str,
    arguments: Callable[[Sequence[Any]], Mapping[str, Any]],
    stamps: Mapping[str, AttrValue],
    specs: Sequence[tf.TensorSpec],
    constants: Sequence[int] = (),
    sizes: Sizes = MappingProxyType({}),
    device: str = HOST,
    *,
    settle: bool = True,
    fuses: bool = True,
) -> Times:
    """Times an installed kernel. `arguments(inputs)` makes the keywords of a call of the op.

    `constants`: the inputs that never change. `sizes`: the values of inputs that are sizes.
    `device`: TensorFlow's name of the nodes' device. `settle`: if the result is close, it is
    measured again with inputs that stay in the caches, as far as they fit. `fuses`: whether
    grappler's remapper may run, which must not see empty products: TF 2.21 ends the process then.
    """
    known = _known(specs, constants)
    varying = _varying(specs, known)
    own = _varying_sizes(specs, known, sizes)
    node = _Call(arguments, stamps, known, device, fuses=fuses)

    def timed(copies: int) -> tuple[Times, int]:
        """The times of this many copies, or of fewer if those suffice."""
        with turns.preparing():
            functions = _functions(op_name, node, varying, 1)
            inputs = _taken(functions, varying, 1, own)
            enough = math.ceil(_CHAIN / max(_seconds_of_one(functions, inputs), rounds.LEAST))
            if (copies := min(copies, enough)) > 1:
                functions = _functions(op_name, node, varying, copies)
                inputs = _taken(functions, varying, copies, own)
        with turns.measuring():
            found = rounds.settled(lambda budget: rounds.taken(functions, inputs, budget), copies)
        return rounds.times(found, copies), copies

    times, copies = timed(_copies(varying, known, _COPIES, _MEMORY))
    fit = _copies(varying, known, _COPIES, _CACHED_MEMORY)
    return timed(fit)[0] if settle and times.close and fit < copies else times


@account.step("measure")
def sweep(  # noqa: PLR0913, PLR0917 - as measure, and the cases
    op_name: str,
    arguments: Callable[[Sequence[Any]], Mapping[str, Any]],
    stamps: Mapping[str, AttrValue],
    specs: Sequence[tf.TensorSpec],
    cases: Sequence[Sequence[tuple[int, ...]]],
    constants: Sequence[int] = (),
    sizes: Sequence[Sizes] = (),
    device: str = HOST,
    *,
    fuses: bool = True,
) -> list[Times]:
    """Times an installed kernel at several sizes, faster and less exactly than `measure`.

    Dims that differ are None in `specs`, so that one graph serves all cases; the largest case comes
    last. `sizes`: for each case the values of size inputs; empty if there are none.
    """
    known = _known(specs, constants)
    varying = _varying(specs, known)
    exact = [
        _varying(
            [tf.TensorSpec(shape, spec.dtype) for shape, spec in zip(shapes, specs, strict=True)],
            known,
        )
        for shapes in cases
    ]
    copies = _copies(exact[-1], known, _SWEEP_COPIES, _SWEEP_MEMORY)
    node = _Call(arguments, stamps, known, device, fuses=fuses)
    with turns.preparing():
        functions = _functions(op_name, node, varying, copies)
        inputs = [
            _taken(functions, case, copies, _varying_sizes(specs, known, own))
            for case, own in zip(exact, sizes or [{}] * len(exact), strict=True)
        ]
    with turns.measuring():
        found = [rounds.taken(functions, one, _SWEEP_BUDGET) for one in inputs]
    return [rounds.times(one, copies) for one in found]


class Chain:
    """Calls of an op in a graph that run the kernel installed last, to time several kernels.

    Takes the arguments of `measure`; a kernel that covers the specs must be installed.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - as measure
        self,
        op_name: str,
        arguments: Callable[[Sequence[Any]], Mapping[str, Any]],
        stamps: Mapping[str, AttrValue],
        specs: Sequence[tf.TensorSpec],
        constants: Sequence[int] = (),
        sizes: Sizes = MappingProxyType({}),
    ) -> None:
        known = _known(specs, constants)
        varying = _varying(specs, known)
        self.copies = _copies(varying, known, _COPIES, _MEMORY)
        node = _Call(arguments, stamps, known)
        self._kernel = _chain(op_name, node.by_kernel(), varying, self.copies)
        self._empty = _empty(varying, self.copies, HOST)
        own = _varying_sizes(specs, known, sizes)
        self._inputs = _taken((self._kernel, self._empty), varying, self.copies, own)

    def seconds(self) -> float:
        """The time of all calls, including TensorFlow's overhead."""
        return rounds.seconds(self._kernel, self._inputs)

    def overhead(self) -> float:
        """TensorFlow's current overhead."""
        return rounds.seconds(self._empty, self._inputs)


class _Call(NamedTuple):
    """A call of the op: its keywords, the node's attributes, and the constant inputs."""

    arguments: Callable[[Sequence[Any]], Mapping[str, Any]]
    stamps: Mapping[str, AttrValue]
    known: Mapping[int, Any]  # by position
    device: str = HOST
    held: Sequence[int] = ()  # the constants that are inputs of the graph
    fuses: bool = True

    def by_kernel(self) -> _Call:
        """The call that runs the kernel."""
        constants = AttrValue(list=AttrValue.ListValue(i=sorted(self.known)))
        stamps = {**_route("tvm"), **self.stamps} | ({CONSTANTS: constants} if self.known else {})
        held = [i for i, array in self.known.items() if array.nbytes >= _LARGE]
        return self._replace(stamps=stamps, held=held)

    def by_expansion(self) -> _Call:
        """The call that runs the expansion."""
        return self._replace(stamps={**_route("tf"), **self.stamps})

    def held_by(self, copies: int) -> list[Any]:
        """The constant inputs of a graph with this many calls."""
        with tf.device(self.device):
            return [_constant(self.known[i], copy) for copy in range(copies) for i in self.held]

    def keywords(self, own: Sequence[Any], held: Sequence[Any], copy: int) -> Mapping[str, Any]:
        """The keywords of call number `copy`, with its `own` inputs and the `held` constants."""
        given, known = iter(own), self.known
        inputs = dict(zip(self.held, held, strict=True))
        for i in range(len(own) + len(known)):
            if i not in inputs:
                inputs[i] = _constant(known[i], copy) if i in known else next(given)
        return self.arguments([inputs[i] for i in sorted(inputs)])


def _known(specs: Sequence[tf.TensorSpec], constants: Sequence[int]) -> dict[int, Any]:
    return {i: _draw(specs[i], np.random.default_rng(i)) for i in constants}


def _varying(specs: Sequence[tf.TensorSpec], known: Mapping[int, Any]) -> list[tf.TensorSpec]:
    return [spec for i, spec in enumerate(specs) if i not in known]


def _varying_sizes(
    specs: Sequence[tf.TensorSpec], known: Mapping[int, Any], sizes: Sizes
) -> list[int | None]:
    """For each varying input, its value if it is a size, else None."""
    return [sizes.get(i) for i in range(len(specs)) if i not in known]


def _functions(
    op_name: str, node: _Call, specs: Sequence[tf.TensorSpec], copies: int
) -> list[_Traced]:
    """The functions to time: with the kernel, with the expansion, and without nodes."""
    ways = (node.by_kernel(), node.by_expansion())
    chains = [_chain(op_name, way, specs, copies) for way in ways]
    return [*chains, _empty(specs, copies, node.device)]


def _seconds_of_one(functions: Sequence[_Traced], inputs: Sequence[Any]) -> float:
    """A rough time of the faster of kernel and expansion, from functions of one node."""
    # Other kernels are made meanwhile, so the minimum of several rounds is taken.
    kernel, expansion, nothing = map(
        min, zip(*rounds.taken(functions, inputs, _CHAIN, 1), strict=True)
    )
    return min(kernel, expansion) - nothing


def _route(backend: str) -> dict[str, AttrValue]:
    return {
        BACKEND: AttrValue(s=backend.encode()),
        NUMERICS: AttrValue(s=b"fast"),  # regardless of the process; stamps may override it
        UNCOUNTED: AttrValue(b=True),  # composite.stats() counts only the user's calls
    }


def _copies(
    specs: Sequence[tf.TensorSpec], constants: Mapping[int, Any], most: int, memory: int
) -> int:
    size = sum(s.shape.num_elements() * s.dtype.size for s in specs)
    fixed = sum(array.nbytes for array in constants.values())
    return int(max(1, min(most, memory // max(size, 1), _CONSTANTS // max(fixed, 1))))


def _constant(array: Any, copy: int) -> Any:
    """A different constant for each copy, since grappler merges equal ones."""
    own = array.copy()
    own.flat[0] = copy
    return tf.constant(own)


def _taken(
    functions: Sequence[_Traced],
    specs: Sequence[tf.TensorSpec],
    copies: int,
    sizes: Sequence[int | None],
) -> list[Any]:
    """Inputs for all copies that the functions accept; each function has run once on them."""
    for numbers in _NUMBERS:
        drawn = _drawn(specs, sizes, numbers)
        inputs = _inputs(drawn, copies, functions[0].device)
        try:
            for function in functions:
                function(*inputs)
            break
        except tf.errors.InvalidArgumentError:
            if numbers is _NUMBERS[-1]:
                raise
    return inputs


def _drawn(specs: Sequence[tf.TensorSpec], sizes: Sequence[int | None], numbers: Any) -> list[Any]:
    random = np.random.default_rng(0)
    integers, floating = numbers
    drawn = [_draw(spec, random) for spec in specs]
    for i, spec in enumerate(specs):
        if spec.dtype.is_integer or spec.dtype.is_floating:
            drawn[i] = (integers if spec.dtype.is_integer else floating)(drawn[i])
    return [x if n is None else np.asarray(n, x.dtype) for x, n in zip(drawn, sizes, strict=True)]


def _inputs(drawn: Sequence[Any], copies: int, device: str) -> list[Any]:
    """Copies of the same numbers, since drawing new ones takes longer than measuring."""
    with tf.device(device):
        return [tf.constant(array.copy()) for _ in range(copies) for array in drawn]


def _draw(spec: tf.TensorSpec, random: np.random.Generator) -> Any:
    shape, dtype = spec.shape.as_list(), spec.dtype.as_numpy_dtype
    if spec.dtype.is_floating:
        return random.standard_normal(shape, np.float32).astype(dtype, copy=False)
    return random.integers(0, 2, shape).astype(dtype)


def _chain(op_name: str, node: _Call, specs: Sequence[tf.TensorSpec], copies: int) -> _Traced:
    def chain(*inputs: Any) -> list[Any]:
        outputs: list[Any] = []
        own, held = inputs[: copies * len(specs)], inputs[copies * len(specs) :]
        for i in range(copies):
            with tf.control_dependencies(outputs[-1:]), tf.device(node.device):
                given = node.keywords(_part(own, i, copies), _part(held, i, copies), i)
                result = call.graph_call(op_name, given, node.stamps, None)
            # Each input is read: grappler removes nodes that only order others.
            outputs += tf.nest.flatten(result)
        return _together(outputs, node.device)

    held = node.held_by(copies)
    return _Traced(chain, [*specs] * copies, node.device, held, fuses=node.fuses)


def _part(inputs: Sequence[Any], number: int, parts: int) -> Sequence[Any]:
    """One of several equal parts of some inputs."""
    width = len(inputs) // parts
    return inputs[number * width : (number + 1) * width]


def _together(outputs: list[Any], device: str) -> list[Any]:
    """The outputs, each ready only when all of them are.

    TensorFlow runs two nodes that become ready at the same time on two threads, and waking the
    second thread takes longer than many kernels.
    """
    with tf.device(device):
        return list(tf.raw_ops.IdentityN(input=outputs)) if outputs else outputs


def _empty(specs: Sequence[tf.TensorSpec], copies: int, device: str) -> _Traced:
    def empty(*inputs: Any) -> list[Any]:
        with tf.device(device):
            own = [tf.identity(x) for x in inputs[:: max(len(specs), 1)]]
        return _together(own, device)

    return _Traced(empty, [*specs] * copies, device)


class _Traced:
    """A traced function, whose calls return when the device has finished.

    It is called as an op. A call of a tf.function takes 17 us per argument in Python, and a thread
    of TensorFlow's inter-op pool, all of which may be held by nodes that wait for the kernel.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        specs: Sequence[tf.TensorSpec],
        device: str,
        held: Sequence[Any] = (),
        *,
        fuses: bool = True,
    ) -> None:
        """`held`: further inputs, which are the same in each call. `fuses`: as `measure`."""
        signature = [*specs, *(tf.TensorSpec(x.shape, x.dtype) for x in held)]
        made = tf.function(function, input_signature=signature, autograph=False)
        self._held = held
        self._concrete = made.get_concrete_function()
        self._dtypes = [output.dtype for output in self._concrete.outputs]
        self._config = _config(device, fuses=fuses).SerializeToString()
        self.device = device

    def __call__(self, *inputs: Any) -> None:
        tf.raw_ops.PartitionedCall(
            args=[*inputs, *self._held],
            Tout=self._dtypes,
            f=self._concrete.name.decode(),
            config_proto=self._config,
        )
        if self.device != HOST:
            with tf.device(self.device):
                tf.raw_ops.SyncDevice()


def _config(device: str, *, fuses: bool = True) -> tf.compat.v1.ConfigProto:
    """How a graph is prepared whose nodes are on a device; others may run on the CPU."""
    config = tf.compat.v1.ConfigProto(allow_soft_placement=True)
    if device == HOST:
        # Rewrites for GPUs, which copy the constants of a graph to find nothing to do on a CPU.
        rewrites = config.graph_options.rewrite_options
        rewrites.layout_optimizer = RewriterConfig.OFF
        rewrites.memory_optimization = RewriterConfig.NO_MEM_OPT
    if not fuses:
        config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
    return config
