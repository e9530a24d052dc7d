"""HardSwish: Howard et al. 2019, https://arxiv.org/abs/1905.02244, section 5.2."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS


@Composite("HardSwish", inputs=["x: T"], derived_attrs=FLOATS, outputs=["y: T"])
def hard_swish(x):
    """Swish made of straight lines: x * relu6(x + 3) / 6.

    Args:
        x: [...].

    Returns:
        [...].
    """
    return x * tf.nn.relu6(x + 3) / 6
