"""Random numbers that depend on a seed alone, and dropout made of them.

tf.random.uniform and whatever else keeps a state is an error that names one of these.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.dtypes import FLOATING
from composite.compiler.library.names import public

_AUTO_SELECT = 3  # the generator that the device chooses, among those TensorFlow numbers


def _check(alg: Any) -> Any:
    if alg is not None and alg != "auto_select":
        raise ValueError(f"the random algorithm is 'auto_select' in a body, not {alg}")


@public("tf.random.stateless_uniform")
def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = tf.float32,
    name: Any = None,
    alg: Any = "auto_select",
) -> Any:
    """Numbers from minval up to maxval (1 by default), or integers of the dtype's whole range."""
    _check(alg)
    key, counter = tf.raw_ops.StatelessRandomGetKeyCounter(seed=seed)
    if _is_floating(dtype):
        numbers = tf.raw_ops.StatelessRandomUniformV2(
            shape=shape, key=key, counter=counter, dtype=dtype, alg=_AUTO_SELECT
        )
        low = tf.convert_to_tensor(minval, dtype)
        high = tf.convert_to_tensor(1 if maxval is None else maxval, dtype)
        return tf.raw_ops.AddV2(x=numbers * (high - low), y=low, name=name)
    if minval is None and maxval is None:
        return tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=shape, key=key, counter=counter, dtype=dtype, alg=_AUTO_SELECT, name=name
        )
    if minval is None or maxval is None:
        raise ValueError("tf.random.stateless_uniform: integers take both minval and maxval")
    return tf.raw_ops.StatelessRandomUniformIntV2(
        shape=shape,
        key=key,
        counter=counter,
        minval=tf.convert_to_tensor(minval, dtype),
        maxval=tf.convert_to_tensor(maxval, dtype),
        alg=_AUTO_SELECT,
        name=name,
    )


def _is_floating(dtype: Any) -> Any:
    """Say whether a dtype is one of floats; where it is written out, while the body is compiled."""
    # One by one, unlike `in`, decides at once which branch of the caller is compiled.
    halves = dtype == tf.float16 or dtype == tf.bfloat16  # noqa: PLR1714
    return halves or dtype == tf.float32 or dtype == tf.float64  # noqa: PLR1714


@public("tf.random.stateless_normal")
def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = tf.float32,
    name: Any = None,
    alg: Any = "auto_select",
) -> Any:
    """Numbers of a normal distribution."""
    _check(alg)
    key, counter = tf.raw_ops.StatelessRandomGetKeyCounter(seed=seed)
    numbers = tf.raw_ops.StatelessRandomNormalV2(
        shape=shape, key=key, counter=counter, dtype=dtype, alg=_AUTO_SELECT
    )
    scaled = numbers * tf.convert_to_tensor(stddev, dtype)
    return tf.raw_ops.AddV2(x=scaled, y=tf.convert_to_tensor(mean, dtype), name=name)


@public("tf.random.stateless_truncated_normal")
def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = tf.float32,
    name: Any = None,
    alg: Any = "auto_select",
) -> Any:
    """Numbers of a normal distribution, none further from the mean than two deviations."""
    _check(alg)
    key, counter = tf.raw_ops.StatelessRandomGetKeyCounter(seed=seed)
    numbers = tf.raw_ops.StatelessTruncatedNormalV2(
        shape=shape, key=key, counter=counter, dtype=dtype, alg=_AUTO_SELECT
    )
    scaled = numbers * tf.convert_to_tensor(stddev, dtype)
    return tf.raw_ops.AddV2(x=scaled, y=tf.convert_to_tensor(mean, dtype), name=name)


@public("tf.random.stateless_categorical")
def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = tf.int64, name: Any = None
) -> Any:
    """Classes, as often as the exponentials of their logits say."""
    return tf.raw_ops.StatelessMultinomial(
        logits=logits, num_samples=num_samples, seed=seed, output_dtype=dtype, name=name
    )


@public("tf.random.stateless_gamma")
def stateless_gamma(
    shape: Any,
    seed: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = tf.float32,
    name: Any = None,
) -> Any:
    """Numbers of gamma distributions; the shape ends with what alpha and beta broadcast to."""
    alpha = tf.convert_to_tensor(alpha, dtype)
    beta = tf.convert_to_tensor(1 if beta is None else beta, dtype)
    key, counter = tf.raw_ops.StatelessRandomGetKeyCounter(seed=seed)
    parameters = tf.raw_ops.BroadcastArgs(s0=tf.shape(alpha), s1=tf.shape(beta))
    numbers = tf.raw_ops.StatelessRandomGammaV3(
        shape=tf.cast(shape, tf.int32),
        key=key,
        counter=counter,
        alg=_AUTO_SELECT,
        alpha=tf.raw_ops.BroadcastTo(input=alpha, shape=parameters),
    )
    return tf.raw_ops.Maximum(x=_smallest(dtype), y=numbers / beta, name=name)


def _smallest(dtype: Any) -> Any:
    """Return the smallest positive number of full precision."""
    if dtype == tf.float16:
        return 2.0**-14
    return 2.0**-1022 if dtype == tf.float64 else 2.0**-126


@public("tf.random.stateless_poisson")
def stateless_poisson(
    shape: Any, seed: Any, lam: Any, dtype: Any = tf.int32, name: Any = None
) -> Any:
    """Numbers of Poisson distributions; the shape ends with that of their rates."""
    return tf.raw_ops.StatelessRandomPoisson(
        shape=tf.cast(shape, tf.int32), seed=seed, lam=lam, dtype=dtype, name=name
    )


@public("tf.random.stateless_binomial")
def stateless_binomial(
    shape: Any,
    seed: Any,
    counts: Any,
    probs: Any,
    output_dtype: Any = tf.int32,
    name: Any = None,
) -> Any:
    """Numbers of binomial distributions; the shape ends with that of their counts and chances."""
    return tf.raw_ops.StatelessRandomBinomial(
        shape=tf.cast(shape, tf.int32),
        seed=seed,
        counts=counts,
        probs=probs,
        dtype=output_dtype,
        name=name,
    )


@public("tf.random.stateless_parameterized_truncated_normal")
def stateless_parameterized_truncated_normal(
    shape: Any,
    seed: Any,
    means: Any = 0.0,
    stddevs: Any = 1.0,
    minvals: Any = -2.0,
    maxvals: Any = 2.0,
    name: Any = None,
) -> Any:
    """Numbers of normal distributions, none beyond the bounds of its own."""
    return tf.raw_ops.StatelessParameterizedTruncatedNormal(
        shape=tf.cast(shape, tf.int32),
        seed=seed,
        means=means,
        stddevs=stddevs,
        minvals=minvals,
        maxvals=maxvals,
        name=name,
    )


@public("tf.random.experimental.stateless_shuffle")
def stateless_shuffle(value: Any, seed: Any, alg: Any = "auto_select", name: Any = None) -> Any:
    """The rows in another order."""
    _check(alg)
    key, counter = tf.raw_ops.StatelessRandomGetKeyCounter(seed=seed)
    return tf.raw_ops.StatelessShuffle(
        value=value, key=key, counter=counter, alg=_AUTO_SELECT, name=name
    )


@public("tf.random.fold_in", "tf.random.experimental.stateless_fold_in")
def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Any:
    """A seed made of a seed and a number, such as that of a step."""
    data = tf.convert_to_tensor(data)
    first = stateless_uniform([], seed=seed, dtype=data.dtype, minval=None, maxval=None, alg=alg)
    return tf.raw_ops.Pack(values=[first, data])


@public("tf.random.split", "tf.random.experimental.stateless_split")
def stateless_split(seed: Any, num: Any = 2, alg: Any = "auto_select") -> Any:
    """Seeds, `num` of them, made of one."""
    seed = tf.convert_to_tensor(seed)
    return stateless_uniform(
        [num, 2], seed=seed, dtype=seed.dtype, minval=None, maxval=None, alg=alg
    )


@public("tf.nn.experimental.stateless_dropout")
def stateless_dropout(
    x: Any,
    rate: Any,
    seed: Any,
    rng_alg: Any = None,
    noise_shape: Any = None,
    name: Any = None,
) -> Any:
    """Zeros in the place of a part of the elements, the others scaled to keep the sum."""
    x = tf.convert_to_tensor(x)
    if x.dtype not in FLOATING:
        raise ValueError(f"tf.nn.experimental.stateless_dropout takes floats, not {x.dtype}")
    if isinstance(rate, tf.Tensor):
        if rate.dtype != x.dtype or rate.shape.rank != 0:
            raise ValueError(
                f"tf.nn.experimental.stateless_dropout: the rate is a scalar of {x.dtype}, not "
                f"{rate.dtype} {rate.shape}"
            )
        scaled = tf.raw_ops.RealDiv(x=x, y=tf.cast(1, x.dtype) - rate)
    else:
        if rate < 0 or rate >= 1:
            raise ValueError(f"the rate of dropout is at least 0 and below 1, not {rate}")
        if rate == 0:
            return x
        scaled = tf.raw_ops.Mul(x=x, y=1 / (1 - rate))
    numbers = stateless_uniform(
        tf.shape(x) if noise_shape is None else noise_shape, seed=seed, dtype=x.dtype, alg=rng_alg
    )
    keep = numbers >= rate
    return tf.raw_ops.SelectV2(condition=keep, t=scaled, e=tf.cast(0, x.dtype))
