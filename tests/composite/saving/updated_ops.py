"""Ops of test_updating.py as they are today; the models that it updates were saved with others."""

import tensorflow as tf

from composite import Composite


@Composite("UpdatedInner", inputs=["x: float"], outputs=["y: float"])
def updated_inner(x):
    return x + 10.0


@Composite("UpdatedOuter", inputs=["x: float"], attrs=["by: float = 2.0", "plus: float = 5.0"],
           outputs=["y: float", "z: float"])  # fmt: skip
def updated_outer(x, by, plus):
    return updated_inner(x) * by + plus, x


@Composite("UpdatedSame", inputs=["x: float"], outputs=["y: float"])
def updated_same(x):
    return x * x


@Composite("UpdatedAttr", inputs=["x: float"], attrs=["times: float"], outputs=["y: float"])
def updated_attr(x, times):
    return x * times


@Composite("UpdatedInput", inputs=["x: float", "by: float"], outputs=["y: float"])
def updated_input(x, by):
    return x * by


@Composite("UpdatedOutput", inputs=["x: float"], outputs=["y: int32"])
def updated_output(x):
    return tf.cast(x, tf.int32)
