"""Activations of tf.nn, and the sigmoid and softplus of tf.math.

tf.nn.relu, elu, selu and softsign are one op and need no entry. tf.tanh is one in TensorFlow 2.21,
and is found as that.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.dtypes import FLOATING, INTEGER
from composite.compiler.library.names import public
from composite.compiler.library.shaping import exchange_with_last


@public("tf.sigmoid", "tf.math.sigmoid", "tf.nn.sigmoid")
def sigmoid(x: Any, name: Any = None) -> Any:
    """1 / (1 + exp(-x))."""
    return tf.raw_ops.Sigmoid(x=x, name=name)


@public("tf.tanh", "tf.math.tanh", "tf.nn.tanh")
def tanh(x: Any, name: Any = None) -> Any:
    """The hyperbolic tangent."""
    return tf.raw_ops.Tanh(x=x, name=name)


@public("tf.math.log_sigmoid")
def log_sigmoid(x: Any, name: Any = None) -> Any:
    """log(sigmoid(x)), as -softplus(-x)."""
    x = tf.convert_to_tensor(x)
    return tf.raw_ops.Neg(x=tf.raw_ops.Softplus(features=-x), name=name)


@public("tf.nn.softplus", "tf.math.softplus")
def softplus(features: Any, name: Any = None) -> Any:
    """log(1 + exp(features))."""
    return tf.raw_ops.Softplus(features=features, name=name)


@public("tf.nn.relu6")
def relu6(features: Any, name: Any = None) -> Any:
    """min(max(features, 0), 6)."""
    return tf.raw_ops.Relu6(features=features, name=name)


@public("tf.nn.leaky_relu")
def leaky_relu(features: Any, alpha: Any = 0.2, name: Any = None) -> Any:
    """The features where they are positive, elsewhere times alpha; integers become float32."""
    features = tf.convert_to_tensor(features)
    if features.dtype in INTEGER:
        features = tf.cast(features, tf.float32)
    return tf.raw_ops.LeakyRelu(features=features, alpha=alpha, name=name)


@public("tf.nn.gelu")
def gelu(features: Any, approximate: Any = False, name: Any = None) -> Any:
    """Gaussian error linear unit: features * Phi(features), Phi by erfc, or by tanh."""
    features = tf.convert_to_tensor(features)
    if features.dtype not in FLOATING:
        raise ValueError(f"tf.nn.gelu takes floating point numbers, not {features.dtype}")
    if approximate:
        coefficient = tf.cast(0.044715, features.dtype)
        cubic = features + coefficient * tf.pow(features, 3)
        return 0.5 * features * (1.0 + tf.tanh(0.7978845608028654 * cubic))
    scale = tf.cast(0.7071067811865476, features.dtype)
    return 0.5 * features * tf.raw_ops.Erfc(x=-features * scale)


@public("tf.nn.silu", "tf.nn.swish")
def silu(features: Any, beta: Any = 1.0) -> Any:
    """Sigmoid linear unit: features * sigmoid(beta * features).

    Where beta * features overflows, the gradient is its limit, 0 or 1; TensorFlow's is NaN.
    """
    features = tf.convert_to_tensor(features)
    beta = tf.cast(beta, features.dtype)
    return features * tf.sigmoid(beta * features)


@public("tf.nn.softmax")
def softmax(logits: Any, axis: Any = None, name: Any = None) -> Any:
    """exp(logits) / sum(exp(logits), axis), by default over the last axis."""
    logits = tf.convert_to_tensor(logits)
    if axis is None or axis == -1 or axis == logits.shape.rank - 1:
        return tf.raw_ops.Softmax(logits=logits, name=name)
    perm = exchange_with_last(axis, logits.shape.rank)
    swapped = tf.raw_ops.Softmax(logits=tf.transpose(logits, perm))
    return tf.transpose(swapped, perm, name=name)


@public("tf.nn.log_softmax")
def log_softmax(logits: Any, axis: Any = None, name: Any = None) -> Any:
    """The logarithm of softmax: logits - log(sum(exp(logits), axis))."""
    logits = tf.convert_to_tensor(logits)
    if axis is None or axis == -1 or axis == logits.shape.rank - 1:
        return tf.raw_ops.LogSoftmax(logits=logits, name=name)
    perm = exchange_with_last(axis, logits.shape.rank)
    swapped = tf.raw_ops.LogSoftmax(logits=tf.transpose(logits, perm))
    return tf.transpose(swapped, perm, name=name)
