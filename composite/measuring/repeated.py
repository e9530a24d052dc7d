"""Functions of several calls, made from one traced call.

Tracing and optimizing a graph of many nodes takes longer than timing it. So a call is traced once,
its nodes are repeated in the FunctionDef, and graphs in which nothing is left to optimize are not
optimized.

Not for: what the calls are, and how they are timed (measure.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework.function_pb2 import FunctionDef
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

from composite.ops import call, kept

HOST = "CPU:0"
_CONSTANT = "measured_constant_"

_numbers = itertools.count()


def constant(array: Any, number: int) -> Any:
    """Constant `number` of a call that is traced, which differs in each repetition."""
    return tf.constant(array, name=f"{_CONSTANT}{number}")


def variant(array: Any, copy: int) -> Any:
    """The constant of one of the calls: grappler merges equal ones."""
    own = array.copy()
    own.flat[0] = copy
    return own


class Call(NamedTuple):
    """A traced call: a FunctionDef whose inputs are those of the call, then the constants it holds.

    Attributes:
        definition: of one call, without the nodes that only pass its results on.
        trace: what it is from; the functions that it calls are known as long as this lives.
        results: the names of its results, as the FunctionDef's inputs spell them.
        device: of its nodes.
        constants: by number, those that `constant` made.
        held: by number, the constants that are inputs.
        optimized: whether grappler has anything to do in its function.
        fuses: whether grappler's remapper may run.
    """

    definition: FunctionDef
    trace: Any
    results: list[str]
    device: str
    constants: Mapping[int, Any]
    held: Mapping[int, Any]
    optimized: bool = False
    fuses: bool = True

    def times(self, copies: int) -> Function:
        """The function of this many calls, each of which waits for the one before."""
        with tf.device(self.device):
            arrays = [variant(x, copy) for copy in range(copies) for x in self.held.values()]
            held = [tf.constant(array) for array in arrays]
        prepared = config(self.device, optimized=self.optimized, fuses=self.fuses)
        return Function(_repeated(self, copies), self.trace, self.device, held, prepared)


def trace(
    function: Callable[..., Any],
    specs: Sequence[tf.TensorSpec],
    device: str,
    constants: Mapping[int, Any] = MappingProxyType({}),
    held: Mapping[int, Any] = MappingProxyType({}),
) -> Call:
    """Traces a call. `function` takes tensors of the `specs`, then those of `held`."""
    signature = [*specs, *(tf.TensorSpec(x.shape, x.dtype) for x in held.values())]

    def on_device(*inputs: Any) -> Any:
        with tf.device(device):
            return tf.nest.flatten(function(*inputs))

    made = tf.function(on_device, input_signature=signature, autograph=False)
    traced = made.get_concrete_function()
    definition = FunctionDef()
    definition.CopyFrom(traced.function_def)
    passing = {n.name: n.input[0] for n in definition.node_def if n.op == "Identity"}
    nodes = [node for node in definition.node_def if node.name not in passing]
    for node in nodes:
        node.input[:] = [_source(x, passing) for x in node.input]
    results = [definition.ret[y.name] for y in definition.signature.output_arg]
    sources = [_source(y, passing) for y in results]
    del definition.node_def[:]
    definition.node_def.extend(nodes)
    return Call(definition, traced, sources, device, constants, held)


def _source(result: str, passing: Mapping[str, str]) -> str:
    """What a result is a copy of."""
    while (name := _node_of(result)) in passing:
        result = passing[name]
    return result


def _repeated(one: Call, copies: int) -> FunctionDef:
    made = FunctionDef()
    made.signature.name = f"composite_measured_{next(_numbers)}"
    made.attr.MergeFrom(one.definition.attr)
    _add_arguments(made, one, copies)
    results: list[str] = []
    for copy in range(copies):
        before = [f"^{_node_of(y)}" for y in results[-1:] if ":" in y]
        for node in one.definition.node_def:
            made.node_def.append(_copied(node, one, copy, before))
        results += [_renamed(y, copy) for y in one.results]
    _add_results(made, one, results)
    return made


def _node_of(result: str) -> str:
    return result.split(":", maxsplit=1)[0]


def _renamed(name: str, copy: int) -> str:
    """A node's or an argument's name, or a name with an output or for control, in a repetition."""
    node, *output = name.split(":")
    return ":".join([f"{node}_{copy}", *output])


def _copied(node: NodeDef, one: Call, copy: int, before: Sequence[str]) -> NodeDef:
    own = NodeDef()
    own.CopyFrom(node)
    own.name = _renamed(node.name, copy)
    own.input[:] = [*(_renamed(x, copy) for x in node.input), *before]
    if node.op == "Const" and node.name.startswith(_CONSTANT):
        array = variant(one.constants[int(node.name.removeprefix(_CONSTANT))], copy)
        own.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(array))
    return own


def _add_arguments(made: FunctionDef, one: Call, copies: int) -> None:
    """Adds those of all calls, then the constants that are held."""
    arguments = list(enumerate(one.definition.signature.input_arg))
    varying = len(arguments) - len(one.held)
    for part in (arguments[:varying], arguments[varying:]):
        for copy in range(copies):
            for number, argument in part:
                at = len(made.signature.input_arg)
                own = made.signature.input_arg.add()
                own.CopyFrom(argument)
                own.name = _renamed(argument.name, copy)
                made.arg_attr[at].CopyFrom(one.definition.arg_attr[number])


def _add_results(made: FunctionDef, one: Call, results: Sequence[str]) -> None:
    """Adds the results, each ready only when all of them are.

    TensorFlow runs two nodes that become ready at the same time on two threads, and waking the
    second thread takes longer than many kernels.
    """
    types = [y.type for y in one.definition.signature.output_arg]
    if not results:
        return
    together = made.node_def.add(name="together", op="IdentityN", input=results)
    together.device = f"/device:{one.device}"
    repeated = types * (len(results) // len(types))
    together.attr["T"].list.type[:] = repeated
    for number, dtype in enumerate(repeated):
        made.signature.output_arg.add(name=f"y{number}", type=dtype)
        made.ret[f"y{number}"] = f"together:output:{number}"


class Function:
    """A function whose calls return when the device has finished.

    It is called as an op. A call of a tf.function takes time in Python for each argument, and a
    thread of TensorFlow's inter-op pool, all of which may be held by nodes that wait for the
    kernel. What TensorFlow has made of it ends with it on a CPU, and with the process on a GPU.
    """

    def __init__(
        self,
        definition: FunctionDef,
        trace: Any,
        device: str,
        held: Sequence[Any],
        config: tf.compat.v1.ConfigProto,
    ) -> None:
        """`trace`: as of a Call. `held`: further inputs, which are the same in each call."""
        call.register_function(self, definition)
        self._trace = trace
        self.definition = definition
        self.device = device
        self._held = held
        name = definition.signature.name
        taken = [x.type for x in definition.signature.input_arg]
        made = [y.type for y in definition.signature.output_arg]
        node = NodeDef(name=name, op="PartitionedCall")
        node.attr["f"].func.name = name
        node.attr["Tin"].list.type[:] = taken
        node.attr["Tout"].list.type[:] = made
        node.attr["config_proto"].s = config.SerializeToString()
        on_host = device == HOST
        self._run = kept.keep(node, taken, made) if on_host else call.eager_runner(node)

    def __call__(self, *inputs: Any) -> None:
        """Runs the function once."""
        self._run([*inputs, *self._held])
        if self.device != HOST:
            with tf.device(self.device):
                tf.raw_ops.SyncDevice()


def config(device: str, *, optimized: bool = True, fuses: bool = True) -> tf.compat.v1.ConfigProto:
    """How a graph is prepared whose nodes are on a device; others may run on the CPU."""
    made = tf.compat.v1.ConfigProto(allow_soft_placement=True)
    rewrites = made.graph_options.rewrite_options
    if device == HOST:
        # Rewrites for GPUs, which copy the constants of a graph to find nothing to do on a CPU.
        rewrites.layout_optimizer = RewriterConfig.OFF
        rewrites.memory_optimization = RewriterConfig.NO_MEM_OPT
        rewrites.disable_meta_optimizer = not optimized
    if not fuses:
        rewrites.remapping = RewriterConfig.OFF
    return made
