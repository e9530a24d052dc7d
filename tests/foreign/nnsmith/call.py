"""A model as a function of arrays, with its gradients, and what it is called with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tests.chains.bodies import numbers
from tests.foreign.nnsmith.model import Model

HELD = ("inputs", "constants", "variables")  # what the weights are


@dataclass(frozen=True)
class Call:
    """A call of a model.

    Attributes:
        model: the model.
        values: by the names of its placeholders, arrays.
        held: what its weights are, one of HELD.
        derived: whether the gradients by inputs are outputs, too.
    """

    model: Model
    values: Mapping[str, np.ndarray]
    held: str
    derived: bool

    @property
    def names(self) -> list[str]:
        """The placeholders that are arguments."""
        held = () if self.held == "inputs" else self.model.weights
        return [name for name in self.values if name not in held]

    @property
    def arguments(self) -> list[tf.Tensor]:
        """What it is called with."""
        return [tf.constant(self.values[name]) for name in self.names]

    def function(self) -> Any:
        """The model as a Python function of `arguments`, with weights of its own."""
        held = {name: x for name, x in self.values.items() if name not in self.names}
        if self.held == "variables":
            variables = {name: tf.Variable(x) for name, x in held.items()}

        def call(*given: Any) -> list[Any]:
            if self.held == "variables":
                weights = {name: tf.convert_to_tensor(one) for name, one in variables.items()}
            else:
                weights = {name: tf.constant(x) for name, x in held.items()}
            tensors = weights | dict(zip(self.names, given, strict=True))
            return self._outputs(tensors)

        return call

    def _outputs(self, tensors: Mapping[str, Any]) -> list[Any]:
        outputs = self.model.inline(tensors)
        if not self.derived:
            return outputs
        floating = [y for y in outputs if y.dtype.is_floating]
        by = [tensors[name] for name in self.values if name not in self.model.weights]
        by = [x for x in by if x.dtype.is_floating]
        gradients = tf.gradients(floating, by) if floating and by else []
        return [*outputs, *(one for one in gradients if one is not None)]


def drawn(model: Model) -> Call:
    """A call of a model: another one for each seed, and the same for each."""
    values = {
        one.name: numbers(one.dtype.name, one.shape, model.seed + number)
        for number, one in enumerate(model.placeholders)
    }
    held = HELD[model.seed % len(HELD)]
    return Call(model, values, held, derived=model.seed // len(HELD) % 2 == 1)
