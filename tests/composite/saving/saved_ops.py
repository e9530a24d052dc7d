"""Ops of the tests of saved models: several outputs, a list, a composite within, known values."""

import tensorflow as tf

from composite import Composite


@Composite("SavedScale", inputs=["x: T"], attrs=["by: float = 2.0"], derived_attrs=["T: {float}"],
           outputs=["y: T"])  # fmt: skip
def saved_scale(x, by):
    return x * by


@Composite("SavedSplit", inputs=["x: float", "sizes: int32"], attrs=["n: int"],
           outputs=["first: float", "parts: n * float"])  # fmt: skip
def saved_split(x, sizes, n):
    parts = tf.split(x, sizes, num=n)
    return saved_scale(x), parts


@Composite("SavedDense", inputs=["x: float", "w: float"], outputs=["y: float"])
def saved_dense(x, w):
    rows = x.shape[0]
    y = tf.nn.relu(tf.matmul(x, w))
    if rows == 1:
        y = y + 1.0
    return y


@Composite("SavedPolynomial", inputs=["x: T"], attrs=["order: int"],
           derived_attrs=["T: {float, half}"], outputs=["y: T", "slope: T"])  # fmt: skip
def saved_polynomial(x, order):
    y = tf.zeros_like(x)
    slope = tf.zeros_like(x)
    for _ in range(order):
        slope = slope * x + y
        y = y * x + 1.0
    return y, slope


@Composite("SavedTwice", inputs=["x: float"], outputs=["first: float", "second: float"])
def saved_twice(x):
    y = x * tf.cast(tf.shape(x)[0], tf.float32)
    return y, y
