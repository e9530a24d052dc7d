"""Cross entropies and other losses of tf.nn. tf.nn.l2_loss is one op."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.names import public


@public("tf.nn.sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: Any = None
) -> Any:
    """For each logit -labels * log(sigmoid) - (1 - labels) * log(1 - sigmoid)."""
    if labels is None or logits is None:
        raise ValueError("tf.nn.sigmoid_cross_entropy_with_logits takes both labels and logits")
    logits = tf.convert_to_tensor(logits)
    labels = tf.convert_to_tensor(labels)
    if not labels.shape.is_compatible_with(logits.shape):
        raise ValueError(f"labels {labels.shape} and logits {logits.shape} must have one shape")
    zeros = tf.raw_ops.ZerosLike(x=logits)
    positive = logits >= zeros
    relu = tf.raw_ops.SelectV2(condition=positive, t=logits, e=zeros)
    below = tf.raw_ops.SelectV2(condition=positive, t=-logits, e=logits)
    rest = tf.raw_ops.Log1p(x=tf.raw_ops.Exp(x=below))
    return tf.raw_ops.AddV2(x=relu - logits * labels, y=rest, name=name)


@public("tf.nn.weighted_cross_entropy_with_logits")
def weighted_cross_entropy_with_logits(
    labels: Any, logits: Any, pos_weight: Any, name: Any = None
) -> Any:
    """The sigmoid cross entropy, in which positive labels count pos_weight times."""
    logits = tf.convert_to_tensor(logits)
    labels = tf.convert_to_tensor(labels)
    if not labels.shape.is_compatible_with(logits.shape):
        raise ValueError(f"labels {labels.shape} and logits {logits.shape} must have one shape")
    weight = 1 + (pos_weight - 1) * labels
    rest = tf.raw_ops.Log1p(x=tf.raw_ops.Exp(x=-tf.raw_ops.Abs(x=logits)))
    weighted = weight * (rest + tf.raw_ops.Relu(features=-logits))
    return tf.raw_ops.AddV2(x=(1 - labels) * logits, y=weighted, name=name)


@public("tf.nn.softmax_cross_entropy_with_logits")
def softmax_cross_entropy_with_logits(
    labels: Any, logits: Any, axis: Any = -1, name: Any = None
) -> Any:
    """The cross entropy of distributions along an axis; half precision is computed in float32."""
    logits = tf.convert_to_tensor(logits)
    half = logits.dtype in (tf.float16, tf.bfloat16)
    precise = tf.cast(logits, tf.float32) if half else logits
    wanted = tf.cast(labels, precise.dtype)
    if axis != -1:
        labels = tf.convert_to_tensor(labels)
        if labels.shape.rank != logits.shape.rank:
            raise ValueError(f"labels {labels.shape} and logits {logits.shape} must have one rank")
        precise = _axis_to_end(precise, axis)
        wanted = _axis_to_end(wanted, axis)
    dims = tf.shape(precise)
    loss, _ = tf.raw_ops.SoftmaxCrossEntropyWithLogits(
        features=_matrix(precise), labels=_matrix(wanted)
    )
    return tf.cast(tf.reshape(loss, dims[:-1]), logits.dtype)


def _axis_to_end(x: Any, axis: Any) -> Any:
    position = axis + x.shape.rank if axis < 0 else axis
    perm = [one for one in range(x.shape.rank) if one != position] + [position]
    return tf.transpose(x, perm)


def _matrix(x: Any) -> Any:
    return tf.reshape(x, [-1, tf.shape(x)[-1]])


@public("tf.nn.sparse_softmax_cross_entropy_with_logits")
def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: Any = None) -> Any:
    """The cross entropy of classes, by their numbers, and logits along the last axis."""
    logits = tf.convert_to_tensor(logits)
    labels = tf.convert_to_tensor(labels)
    if not labels.shape.is_compatible_with(logits.shape[:-1]):
        raise ValueError(
            f"labels {labels.shape} must have the shape of logits {logits.shape} without its last"
        )
    precise = tf.cast(logits, tf.float32) if logits.dtype == tf.float16 else logits
    loss, _ = tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(
        features=_matrix(precise), labels=tf.reshape(labels, [-1])
    )
    return tf.cast(tf.reshape(loss, tf.shape(labels)), logits.dtype)


@public("tf.nn.log_poisson_loss")
def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: Any = False, name: Any = None
) -> Any:
    """exp(log_input) - log_input * targets, and Stirling's approximation of log(targets!)."""
    log_input = tf.convert_to_tensor(log_input)
    targets = tf.convert_to_tensor(targets)
    if not targets.shape.is_compatible_with(log_input.shape):
        raise ValueError(
            f"targets {targets.shape} and log_input {log_input.shape} must have one shape"
        )
    loss = tf.raw_ops.Exp(x=log_input) - log_input * targets
    if compute_full_loss:
        circle = 0.5 * tf.raw_ops.Log(x=6.283185307179586 * targets)
        stirling = targets * tf.raw_ops.Log(x=targets) - targets + circle
        zeros = tf.raw_ops.ZerosLike(x=targets)
        small = tf.raw_ops.LogicalAnd(x=targets >= zeros, y=targets <= tf.ones_like(targets))
        return loss + tf.raw_ops.SelectV2(condition=small, t=zeros, e=stirling)
    return loss
