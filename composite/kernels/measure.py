"""Measures a kernel against what TensorFlow would run instead, on the node's own terms.

Both are measured as nodes of a graph: several copies of the op in one function, each with inputs of
its own (a real model does not read the same weights again), one after the other, once told to run
the kernel and once the expansion, which grappler then fuses as it would hand-written ops. The cost
of an empty function of the same signature is taken off, so no Python is in the result. Inputs that
never change are constants of the graph there too.

Where both wait for memory neither is faster: inputs that are in the caches tell them apart.

On a GPU a run ends when the device has done all of it. So a node's time is that of the device or
that of the host, whichever is longer, as in a model.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from composite.binding.records import BACKEND, NUMERICS, UNCOUNTED, AttrValue
from composite.compiler import account
from composite.kernels.decisions import Times
from composite.ops import call

HOST = "CPU:0"
Sizes = Mapping[int, int]
"""By the position of an input that is a scalar, its value."""
_Round = tuple[float, float, float]  # seconds of the kernel, of the expansion, of nothing

# What becomes of integers that are 0 and 1.
_ANY, _ONES, _ZEROS = (lambda x: x), (lambda x: x | 1), (lambda x: x * 0)
_BELOW_ONE = lambda x: abs(x) % 1  # noqa: E731
# Of integers and of floating numbers, one after the other until the ops take them: by a zero,
# something may be divided; it is the only place of a size of 1, and others may be cast to places.
_NUMBERS = ((_ANY, _ANY), (_ONES, _ANY), (_ZEROS, _ANY), (_ZEROS, _BELOW_ONE))

_COPIES = 16
_MEMORY = 64 << 20  # bytes of inputs, at most
_CACHED_MEMORY = 4 << 20
_CONSTANTS = 16 << 20  # bytes of constants, which tracing and grappler copy a few times
_ROUNDS = 60
_FEWEST = 5  # rounds, however long one takes
_BUDGET = 0.15  # seconds of timed runs, roughly
_LEAST = 1e-8  # seconds of a node: less cannot be told from the function without it
_CLOCK = 1e-7  # seconds that the clock can tell apart
_OPINIONS = 3  # times that a kernel is measured which does not clearly win, at most
# Of a size beside the one that was asked for:
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
    cached: bool = False,
) -> Times:
    """Times an installed kernel. `arguments(inputs)` makes the keywords of a call of the op.

    `constants`: the inputs that never change. `sizes`: the values of those that are sizes.
    `device`: TensorFlow's name of the nodes' device. `cached`: inputs stay in the caches from run
    to run, as far as they fit.
    """
    known = _known(specs, constants)
    varying = _varying(specs, known)
    copies = _copies(varying, known, _COPIES, _CACHED_MEMORY if cached else _MEMORY)
    functions = _functions(op_name, _Call(arguments, stamps, known, device), varying, copies)
    inputs = _taken(functions, varying, copies, _varying_sizes(specs, known, sizes))
    rounds = _settled(lambda: _rounds(functions, inputs, _BUDGET), copies)
    return _times(rounds, copies)


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
) -> list[Times]:
    """Times an installed kernel at several sizes, more quickly and less exactly than `measure`.

    The dims that differ are None in `specs`: one graph serves all cases, the largest comes last.
    `sizes`: for each case, the values of inputs that are sizes; none at all if none is.
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
    functions = _functions(op_name, _Call(arguments, stamps, known, device), varying, copies)
    found = []
    for case, own in zip(exact, sizes or [{}] * len(exact), strict=True):
        inputs = _taken(functions, case, copies, _varying_sizes(specs, known, own))
        found.append(_times(_rounds(functions, inputs, _SWEEP_BUDGET), copies))
    return found


class Chain:
    """Calls of an op in a graph, which run whatever kernel was installed last: for timing several.

    Arguments as those of `measure`; a kernel that covers the specs must be installed.
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
        node = _Call(arguments, {**stamps, **_route("tvm")}, known)
        self._kernel = _chain(op_name, node, varying, self.copies)
        self._empty = _empty(varying, self.copies, HOST)
        own = _varying_sizes(specs, known, sizes)
        self._inputs = _taken((self._kernel, self._empty), varying, self.copies, own)

    def seconds(self) -> float:
        """How long all calls take, and what TensorFlow adds to them."""
        return _time(self._kernel, self._inputs)

    def overhead(self) -> float:
        """What TensorFlow adds, now."""
        return _time(self._empty, self._inputs)


class _Call(NamedTuple):
    """How the op is called: its keywords, the node's attributes, the inputs that are constants."""

    arguments: Callable[[Sequence[Any]], Mapping[str, Any]]
    stamps: Mapping[str, AttrValue]
    known: Mapping[int, Any]  # by position
    device: str = HOST

    def keywords(self, own: Sequence[Any], copy: int) -> Mapping[str, Any]:
        """Of the call number `copy`, with inputs `own` beside the constants."""
        given, known = iter(own), self.known
        count = len(own) + len(known)
        return self.arguments(
            [_constant(known[i], copy) if i in known else next(given) for i in range(count)]
        )


def _known(specs: Sequence[tf.TensorSpec], constants: Sequence[int]) -> dict[int, Any]:
    return {i: _draw(specs[i], np.random.default_rng(i)) for i in constants}


def _varying(specs: Sequence[tf.TensorSpec], known: Mapping[int, Any]) -> list[tf.TensorSpec]:
    return [spec for i, spec in enumerate(specs) if i not in known]


def _varying_sizes(
    specs: Sequence[tf.TensorSpec], known: Mapping[int, Any], sizes: Sizes
) -> list[int | None]:
    """For each of the varying inputs its value if that is a size, else None."""
    return [sizes.get(i) for i in range(len(specs)) if i not in known]


def _functions(
    op_name: str, node: _Call, specs: Sequence[tf.TensorSpec], copies: int
) -> list[_Traced]:
    """What is timed: the kernel, the expansion, nothing."""
    chains = [
        _chain(op_name, node._replace(stamps={**node.stamps, **_route(backend)}), specs, copies)
        for backend in ("tvm", "tf")
    ]
    return [*chains, _empty(specs, copies, node.device)]


def _settled(take: Callable[[], list[_Round]], copies: int) -> list[_Round]:
    """Rounds until a kernel clearly wins, or no more are worth their time.

    One that loses may have shared its threads with a load that ends, such as the calls that asked
    for it; an expansion on fewer threads loses less by that.
    """
    rounds: list[_Round] = []
    for _ in range(_OPINIONS):
        rounds += take()
        _, _, above = statistics.quantiles(_ratios(rounds, copies), n=4)
        if above < 1.0:
            break
    return rounds


def _times(rounds: Sequence[_Round], copies: int) -> Times:
    base, noise = _without(rounds)
    low, ratio, high = statistics.quantiles(_ratios(rounds, copies), n=4)
    median = statistics.median(expansion for _, expansion, _ in rounds)
    expansion_us = of_one(median, base, copies, noise) * 1e6
    # From the ratio, so that times and verdict agree.
    kernel_us = max(ratio * expansion_us, of_one(base, base, copies, noise) * 1e6)
    return Times(kernel_us, expansion_us, ratio, low, high)


def _ratios(rounds: Sequence[_Round], copies: int) -> list[float]:
    base, noise = _without(rounds)
    return [of_one(a, base, copies, noise) / of_one(b, base, copies, noise) for a, b, _ in rounds]


def _without(rounds: Sequence[_Round]) -> tuple[float, float]:
    """Seconds of the function without nodes, and by how much half of its runs take longer."""
    empty = [nothing for _, _, nothing in rounds]
    return min(empty), statistics.median(empty) - min(empty)


def of_one(chain: float, empty: float, copies: int, noise: float = 0.0) -> float:
    """Seconds of one of so many nodes, whose function took `chain`, and one without them `empty`.

    No less than what can be told apart: by the clock, and beside the `noise` of such runs.
    """
    return max(chain - empty, noise, copies * _LEAST, _CLOCK) / copies


def _route(backend: str) -> dict[str, AttrValue]:
    return {
        BACKEND: AttrValue(s=backend.encode()),
        NUMERICS: AttrValue(s=b"fast"),  # whatever the process's default
        UNCOUNTED: AttrValue(b=True),  # composite.stats() is about the user's calls
    }


def _copies(
    specs: Sequence[tf.TensorSpec], constants: Mapping[int, Any], most: int, memory: int
) -> int:
    size = sum(s.shape.num_elements() * s.dtype.size for s in specs)
    fixed = sum(array.nbytes for array in constants.values())
    return int(max(1, min(most, memory // max(size, 1), _CONSTANTS // max(fixed, 1))))


def _constant(array: Any, copy: int) -> Any:
    """A constant of its own for each copy: grappler makes one of equal ones."""
    own = array.copy()
    own.flat[0] = copy
    return tf.constant(own)


def _taken(
    functions: Sequence[_Traced],
    specs: Sequence[tf.TensorSpec],
    copies: int,
    sizes: Sequence[int | None],
) -> list[Any]:
    """Inputs for all copies, after a first run of each function on them."""
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
    """The same numbers in memory of their own: to draw them anew takes longer than to measure."""
    with tf.device(device):
        return [tf.constant(array.copy()) for _ in range(copies) for array in drawn]


def _draw(spec: tf.TensorSpec, random: np.random.Generator) -> Any:
    shape, dtype = spec.shape.as_list(), spec.dtype.as_numpy_dtype
    if spec.dtype.is_floating:
        return random.standard_normal(shape).astype(dtype)
    return random.integers(0, 2, shape).astype(dtype)


def _chain(op_name: str, node: _Call, specs: Sequence[tf.TensorSpec], copies: int) -> _Traced:
    width = len(specs)

    def chain(*inputs: Any) -> list[Any]:
        outputs: list[Any] = []
        for i in range(copies):
            with tf.control_dependencies(outputs[-1:]), tf.device(node.device):
                own = inputs[i * width : (i + 1) * width]
                result = call.graph_call(op_name, node.keywords(own, i), node.stamps, None)
            # Read, every one: grappler turns a node that only orders others into nothing.
            outputs += tf.nest.flatten(result)
        return _together(outputs, node.device)

    return _traced(chain, [*specs] * copies, node.device)


def _together(outputs: list[Any], device: str) -> list[Any]:
    """The outputs, none of them before the last.

    Two nodes that become ready at once are run on two threads, and waking the other takes longer
    than many a kernel.
    """
    with tf.device(device):
        return list(tf.raw_ops.IdentityN(input=outputs)) if outputs else outputs


def _empty(specs: Sequence[tf.TensorSpec], copies: int, device: str) -> _Traced:
    def empty(*inputs: Any) -> list[Any]:
        with tf.device(device):
            own = [tf.identity(x) for x in inputs[:: max(len(specs), 1)]]
        return _together(own, device)

    return _traced(empty, [*specs] * copies, device)


class _Traced(NamedTuple):
    """A function of a graph, which returns when its device has done it."""

    run: Callable[..., Any]
    device: str

    def __call__(self, *inputs: Any) -> None:
        self.run(*inputs)
        if self.device != HOST:
            with tf.device(self.device):
                tf.raw_ops.SyncDevice()


def _traced(function: Callable[..., Any], specs: Sequence[tf.TensorSpec], device: str) -> _Traced:
    """A traced function, called as the op that it is.

    A tf.function's call in Python costs 17 us for each argument, and there are many.
    """
    concrete = tf.function(
        function, input_signature=list(specs), autograph=False
    ).get_concrete_function()
    dtypes = [output.dtype for output in concrete.outputs]

    # As in a tf.function, ops that have no kernel on the device run on the CPU.
    config = tf.compat.v1.ConfigProto(allow_soft_placement=True).SerializeToString()

    def run(*inputs: Any) -> Any:
        return tf.raw_ops.PartitionedCall(
            args=inputs, Tout=dtypes, f=concrete.name.decode(), config_proto=config
        )

    return _Traced(run, device)


def _rounds(functions: Sequence[_Traced], inputs: Sequence[Any], budget: float) -> list[_Round]:
    """Seconds of each function, run in turns, so that a busy moment of the machine hits all."""
    rounds = []
    end = time.perf_counter() + budget
    for number in range(_ROUNDS):
        if number >= _FEWEST and time.perf_counter() > end:
            break
        kernel, expansion, nothing = (_time(function, inputs) for function in functions)
        rounds.append((kernel, expansion, nothing))
    return rounds


def _time(function: _Traced, inputs: Sequence[Any]) -> float:
    start = time.perf_counter()
    function(*inputs)
    return time.perf_counter() - start
