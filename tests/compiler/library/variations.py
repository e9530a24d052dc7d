"""Calls of the library's functions, each changed a little: another shape, dtype or number.

What TensorFlow's own function refuses, the library's has to refuse, and the other way round; where
both take a call, they give the same. `python -m tests.compiler.library [SEED COUNT]` runs all of
them, or a draw.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tests.compiler.library import test_conversion, test_math, test_matrices, test_tensors
from tests.compiler.library.cases import made
from tests.compiler.library.conftest import numbers, ours, with_ours
from tests.compiler.library.nn import test_nn

DTYPES = (
    *("int32", "float32", "float64", "bool", "complex64", "uint8"),
    *("bfloat16", "float16", "int64"),
)


def _row(*dims: int) -> Any:
    return (np.arange(np.prod(dims, dtype=int), dtype=np.float32) / 7).reshape(dims)


def _ints(*items: int) -> Any:
    return np.array(items, np.int32)


# Arguments that the other tests give as numbers are tensors here, so that they are changed too.
TENSORS: list[tuple[Any, ...]] = [
    ("tf.clip_by_value(x, y, z)", _row(3, 4), _row(4) - 1, _row(4) + 1),
    ("tf.clip_by_value(x, y, z)", _row(3, 4), _row(3, 1) - 1, _row(1, 4) + 1),
    ("tf.clip_by_value(x, y, z)", _row(4), np.float32(0), np.float32(1)),
    ("tf.clip_by_norm(x, y, 0)", _row(3, 4), np.float32(0.5)),
    ("tf.clip_by_global_norm([x, y], z)[0]", _row(3, 4), _row(2), np.float32(0.5)),
    ("tf.fill(x, y)", _ints(2, 3), np.float32(2)),
    ("tf.zeros(x)", _ints(2, 3)),
    ("tf.eye(x, y)", np.int32(3), np.int32(2)),
    ("tf.one_hot(x, 3, y, z)", _ints(1, 2), np.float32(3), np.float32(1)),
    ("tf.one_hot(x, 3, y, z, dtype=tf.float32)", _ints(1, 2), np.float32(3), np.float32(1)),
    ("tf.range(x, y, z)", np.float32(1), np.int32(9), np.int64(2)),
    ("tf.linspace(x, y, z)", np.float32(1), np.float32(9), np.int32(4)),
    ("tf.sequence_mask(x, y)", _ints(1, 3), np.int32(4)),
    ("tf.gather(x, y, axis=z)", _row(3, 4), _ints(1, 2), np.int32(1)),
    ("tf.roll(x, y, z)", _row(3, 4), _ints(1, 2), _ints(0, 1)),
    ("tf.concat([x, y], z)", _row(2, 3), _row(1, 3), np.int32(0)),
    ("tf.strided_slice(x, y, z)", _row(3, 4), _ints(0, 1), _ints(2, 2)),
    ("tf.reduce_max(x, y)", _row(3, 4), _ints(0, 1)),
    ("tf.where(x, y, z)", _row(3, 4) > 1, _row(3, 4), _row(4)),
    ("tf.math.scalar_mul(x, y)", np.float32(2), _row(3)),
    ("tf.nn.batch_normalization(x, y, z, y, z, 1e-3)", _row(4, 3), _row(3), _row(3)),
    ("tf.image.adjust_brightness(x, y)", _row(3, 4, 2), np.float32(0.5)),
    ("tf.image.adjust_contrast(x, y)", _row(3, 4, 2), np.float32(0.5)),
    ("tf.random.stateless_uniform([3], x, y, z)", _ints(1, 2), np.float32(0), np.float32(4)),
    ("tf.random.stateless_truncated_normal([3], x, y, z)", _ints(1, 2), _row(3), np.float32(4)),
    ("tf.nn.weighted_moments(x, [0], y)", _row(3, 4), _row(3, 4)),
    ("tf.linalg.diag_part(x, k=y)", _row(3, 4), np.int32(1)),
    ("tf.repeat(x, y)", _row(2, 3), np.int32(2)),
    ("tf.repeat(x, y, axis=1)", _row(2, 3), _ints(1, 2, 0)),
    ("tf.math.unsorted_segment_mean(x, y, z)", _row(4, 2), _ints(0, 1, 1, 2), np.int32(3)),
    ("tf.searchsorted(x, y)", _row(4), _row(2)),
    ("tf.nn.bias_add(x, y)", _row(4, 2), _row(2)),
    ("tf.matmul(x, y)", _row(2, 3, 4), _row(2, 4, 2)),
]

# Where the two differ on purpose: a pattern of the call and of the change, and why.
KNOWN = (
    (r"tf\.saturate_cast|tf\.dtypes\.saturate_cast", "complex64", "refused: take tf.math.real"),
    (r"tf\.(linalg\.)?mat(mul|vec)", "bfloat16", "refused: which of the two dtypes is meant"),
    (r"tf\.norm.*axis=\(0, 1\)|tf\.norm\(x, 2", "number", "matrix norms by singular values"),
    (r"tf\.image\.", "empty", "an image without pixels has an answer"),
    (r"tf\.image\.adjust_gamma", "two", "a batch of gammas"),
    (r"tf\.signal\.rfft", "empty", "TensorFlow does not pad what is empty, and reads past it"),
    (r"tf\.repeat", "empty", "TensorFlow infers another shape than it makes"),
    (r"tf\.repeat\(x, repeats=\[2, -1\]", "number", "TensorFlow fails in a reshape"),
    (r"tf\.nn\.softmax_cross.*axis=-2", "number", "TensorFlow fails in a range"),
    (r"tf\.fingerprint", "empty", "TensorFlow leaves the memory as it was"),
    (r"tf\.argmax", "uint8", "refused as in a graph; eager TensorFlow does not look"),
)


def shapes(value: Any) -> Iterator[tuple[str, Any]]:
    """Change the shape of an input: an axis longer, of size 1, gone, empty, one more."""
    for axis in range(value.ndim):
        if value.shape[axis]:
            yield "longer", np.concatenate([value, np.take(value, [0], axis)], axis)
            yield "gone", np.take(value, 0, axis)
        if value.shape[axis] > 1:
            yield "one", np.take(value, [0], axis)
        yield "empty", np.take(value, np.array([], int), axis)
    yield "first", value[None]
    yield "two", np.stack([value, value])
    yield "last", value[..., None]


def literals(text: str) -> Iterator[str]:
    """Change a number in the arguments of a call."""
    if text.startswith("tf.signal"):
        return  # TensorFlow's transforms end the process on lengths that make no sense
    first = text.index("(")
    for found in re.finditer(r"(?<![\w.'])-?\d+(\.\d+)?(?![\w.'\]]*')", text[first:]):
        number = eval(found[0])
        whole = (number + 1, -number - 1, 0)
        for other in whole if isinstance(number, int) else (-number, 3 * number):
            if other != number:
                start, end = first + found.start(), first + found.end()
                yield text[:start] + repr(other) + text[end:]


def variations() -> Iterator[tuple[str, str, list[Any]]]:
    """Go through the calls, each with what was changed and its inputs."""
    modules = (test_conversion, test_math, test_matrices, test_tensors, test_nn)
    for text, *specs in [*TENSORS, *(case for module in modules for case in module.CASES)]:
        inputs = [np.asarray(made(spec, seed)) for seed, spec in enumerate(specs)]
        yield text, "nothing", inputs
        for changed in literals(text):
            yield changed, "number", inputs
        for place, value in enumerate(inputs):
            changes = list(shapes(value))
            if value.dtype.kind not in "USO":
                own = tf.as_dtype(value.dtype).name
                for name in DTYPES:
                    if name != own:
                        other = np.real(value).astype(tf.as_dtype(name).as_numpy_dtype)
                        changes.append((name, other))
            for how, other in changes:
                yield text, how, [*inputs[:place], other, *inputs[place + 1 :]]


def known(text: str, how: str) -> bool:
    """Say whether a difference is one of those on purpose."""
    return any(re.match(call, text) and how == change for call, change, _ in KNOWN)


def difference(text: str, inputs: list[Any]) -> str:
    """Compare the library's function with TensorFlow's: empty, or what differs."""
    named = dict(zip("xyz", map(tf.constant, inputs), strict=False))
    names = {"tf": tf, "np": np, "ours": ours}
    results: list[Any] = []
    for call in (text, with_ours(text)):
        try:
            result = eval(call, names, named)
        except Exception as error:  # noqa: BLE001 - whatever it is, the call is refused
            results.append(error)
        else:
            results.append(result if isinstance(result, (list, tuple)) else [result])
    theirs, mine = results
    refused = [isinstance(result, Exception) for result in results]
    if any(refused):
        return "" if all(refused) else f"refused by {'us' if refused[1] else 'TensorFlow'} alone"
    for one, wanted in zip([tf.convert_to_tensor(y) for y in mine], theirs, strict=True):
        if one.dtype != wanted.dtype or one.shape != wanted.shape:
            return f"{one.dtype.name}{one.shape} is not {wanted.dtype.name}{wanted.shape}"
        if not np.array_equal(numbers(one), numbers(wanted), equal_nan=one.dtype.is_floating):
            return "other values"
    return ""


def differences(seed: int | None = None, count: int = 0) -> list[str]:
    """Run all variations, or a draw; name those that differ and are not known."""
    chosen = list(variations())
    if seed is not None:
        chosen = random.Random(seed).sample(chosen, count)
    found = []
    for text, how, inputs in chosen:
        if what := difference(text, inputs):
            told = [f"{value.dtype.name}{list(value.shape)}" for value in inputs]
            if not known(text, how):
                found.append(f"{text} of {', '.join(told)} ({how}): {what}")
    return found
