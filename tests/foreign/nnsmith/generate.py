"""Writes the models that NNSmith generates for some seeds, one a line: `generate.py 7 100`.

The Python of .venv-nnsmith runs it, see `generated.py`. NNSmith draws operators, and has z3 choose
shapes and attributes with which they are valid; its TensorFlow functions are traced. Weights and
larger constants become placeholders, so that a model is described without their values.

A seed always gives the same model: z3 and the drawing are bounded by steps and tries, not by time.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

# NNSmith keeps there which dtypes each operator takes. The Makefile has it find that out, by calls
# of TensorFlow, after which a process may generate other models than one that reads the list.
os.environ["XDG_CACHE_HOME"] = str(Path(sys.prefix) / "cache")

import tensorflow as tf
import z3
from nnsmith.abstract.extension import activate_ext, patch_requires
from nnsmith.graph_gen import SymbolicGen
from nnsmith.materialize.tensorflow import EagerModeCtx, TFModelCPU
from nnsmith.narrow_spec import auto_opset
from nnsmith.util import set_seed
from tensorflow.core.framework.graph_pb2 import GraphDef

from tests.foreign.nnsmith.model import Model

# Not complex numbers: TensorFlow's own ops compute these in any case.
_DTYPES = ("f16", "f32", "f64", "i8", "i32", "i64", "u8", "bool")
_MOST_OPS = 32
_MOST_ELEMENTS = (64, 1024, 8192)  # of a tensor
_TRIES = 30  # for each op
_STEPS = 2_000_000  # of z3, for one question
_NEVER = 3_600_000  # milliseconds
_LARGE = 16  # elements of a constant that becomes a weight


class Traced(TFModelCPU):
    """NNSmith's model of TensorFlow, whose functions are traced into one graph."""

    def concrete(self) -> Any:
        """Its concrete function; the layers have their weights before it is traced."""
        with EagerModeCtx(True), self.device:  # calls of functions in it are traced inline
            self.net(**self.random_inputs())
            return tf.function(self._of_inputs, autograph=False).get_concrete_function(
                **self.input_specs
            )

    def _of_inputs(self, **inputs: Any) -> Any:
        return self.net(**inputs)

    def dump(self, path: Any) -> None:
        """What NNSmith asks of each op and dtype, to see which are supported."""
        self.concrete()


class Drawn(SymbolicGen):
    """Ends when it has tried often enough, which does not depend on how fast the machine is."""

    tries = 0

    def extra_exit_check(self, max_node_size: int) -> bool:
        """Whether to leave the model as it is."""
        self.tries += 1
        return self.tries > _TRIES * max_node_size


@patch_requires("global", "core.Reshape")
def sizes_are_positive(op: Any, _inputs: Any) -> list[Any]:
    """Else z3 may choose -1 for two sizes, of which NNSmith's check of dtypes makes an error."""
    return [size >= 1 for size in op.target_shape]


def supported() -> list[Any]:
    """The operators that TensorFlow runs, with the dtypes that it takes; NNSmith keeps the list."""
    Traced.add_seed_setter()
    set_seed(0)
    activate_ext(Traced.operators())
    operators: list[Any] = auto_opset(Traced, None, vulops=True)
    return operators


def generate(operators: list[Any], seed: int) -> Model:
    """The model of a seed."""
    pick = random.Random(seed)
    z3.z3._main_ctx = None  # what z3 chooses depends on the terms that its context has had
    tf.keras.backend.clear_session()  # layers are numbered
    drawn = Drawn(
        operators,
        seed,
        symbolic_init=pick.random() < 0.5,
        max_elem_per_tensor=pick.choice(_MOST_ELEMENTS),
        dtype_choices=_DTYPES,
    )
    z3.set_param("rlimit", _STEPS)
    drawn.abstract_gen(max_node_size=pick.randint(2, _MOST_OPS), max_gen_millisec=_NEVER)
    ir = drawn.make_concrete()
    made = Traced.from_gir(ir)
    concrete = made.concrete()
    graph = concrete.graph.as_graph_def()
    weights = [node.name for node in graph.node if _given(concrete, node)]
    nodes = GraphDef(versions=graph.versions)
    nodes.node.extend(node for node in graph.node if node.op != "NoOp" and not _is_handle(node))
    for node in nodes.node:  # what reads a weight need not run before the end
        values = [name for name in node.input if not name.startswith("^")]
        del node.input[:]
        node.input.extend(values)
    known = {one.name() for one in operators}
    return Model(
        seed=seed,
        ops=tuple(sorted(known & {one.iexpr.op.name() for one in ir.insts})),
        graph=nodes,
        weights=tuple(weights),
        outputs=tuple(tensor.name for tensor in concrete.outputs),
    )


def _given(concrete: Any, node: Any) -> bool:
    """Whether a node reads a weight, or is a larger constant; then it becomes a placeholder."""
    if node.op not in {"ReadVariableOp", "Const"}:
        return False
    (tensor,) = concrete.graph.get_operation_by_name(node.name).outputs
    is_large = tensor.dtype.is_floating and tensor.shape.num_elements() > _LARGE
    if node.op == "Const" and not is_large:
        return False
    node.op = "Placeholder"
    del node.input[:]
    node.attr.clear()
    node.attr["dtype"].type = tensor.dtype.as_datatype_enum
    node.attr["shape"].shape.CopyFrom(tensor.shape.as_proto())
    return True


def _is_handle(node: Any) -> bool:
    return node.op == "Placeholder" and tf.as_dtype(node.attr["dtype"].type) == tf.resource


def main(first: int, count: int) -> None:
    """Writes the models of so many seeds."""
    if sys.flags.hash_randomization:
        raise SystemExit("set PYTHONHASHSEED=0: NNSmith draws from sets")
    operators = supported()
    for seed in range(first, first + count):
        print(generate(operators, seed).line(), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
