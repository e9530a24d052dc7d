"""tf.linalg and tf.strings as the library has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.compiler.library.cases import made

pytestmark = pytest.mark.many_cases

SQUARE = made("float64[2, 3, 3]")
POSITIVE = SQUARE @ SQUARE.transpose(0, 2, 1) + 3 * np.eye(3)
LOWER = np.linalg.cholesky(POSITIVE)
WORDS = np.array([["one", "two"], ["thrée", ""]])

CASES: list[tuple[Any, ...]] = [
    ("tf.linalg.matrix_transpose(x)", "float32[2, 3, 4]"),
    ("tf.linalg.matrix_transpose(x, conjugate=True)", "complex64[2, 3]"),
    ("tf.linalg.adjoint(x)", "complex64[2, 3, 4]"),
    ("tf.linalg.diag(x)", "float32[2, 3]"),
    ("tf.linalg.diag(x, k=1, num_cols=5, padding_value=7)", "int32[3]"),
    ("tf.linalg.diag(x, k=-1, align='LEFT_RIGHT')", "float32[2, 3]"),
    ("tf.linalg.diag(x)", "bool[3]"),
    ("tf.linalg.diag_part(x)", "float32[2, 3, 4]"),
    ("tf.linalg.diag_part(x, k=[-1, 1], align='LEFT_RIGHT')", "float32[3, 4]"),
    ("tf.linalg.diag_part(x, k=1)", "bool[3, 4]"),
    ("tf.linalg.set_diag(x, y)", "float32[3, 4]", "float32[3]"),
    ("tf.linalg.set_diag(x, diagonal=y, k=-1)", "int32[2, 3, 3]", "int32[2, 2]"),
    ("tf.linalg.tensor_diag_part(x)", "float32[2, 3, 2, 3]"),
    ("tf.linalg.tensor_diag(x)", "float32[3]"),
    ("tf.linalg.trace(x)", "complex64[2, 3, 3]"),
    ("tf.linalg.band_part(x, 1, 0)", "float32[3, 4]"),
    ("tf.linalg.logdet(x)", POSITIVE),
    ("tf.linalg.cholesky_solve(x, y)", LOWER, SQUARE),
    ("tf.linalg.triangular_solve(x, y)", LOWER, SQUARE),
    ("tf.linalg.triangular_solve(x, y, lower=False, adjoint=True)", POSITIVE, SQUARE),
    ("tf.linalg.svd(x)", SQUARE),
    ("tf.linalg.svd(x, full_matrices=True)", "float32[2, 4]"),
    ("tf.linalg.svd(x, compute_uv=False)", "complex64[3, 2]"),
    ("tf.linalg.eigh(x)", POSITIVE),
    ("tf.linalg.eigvalsh(tensor=x)", POSITIVE),
    ("tf.tensordot(x, y, 1)", "float32[2, 3]", "float32[3, 4]"),
    ("tf.tensordot(x, y, axes=2)", "float32[5, 2, 3]", "float32[2, 3, 4]"),
    ("tf.linalg.tensordot(x, y, [[0], [-1]])", "float32[3, 2]", "float32[4, 3]"),
    ("tf.tensordot(x, y, axes=[[2, 0], [0, 1]])", "float64[2, 5, 3]", "float64[3, 2]"),
    ("tf.tensordot(x, y, 0)", "float32[2]", "float32[3]"),
    ("tf.tensordot(x, y, [1, 0])", "complex64[2, 3]", "complex64[3]"),
    ("tf.einsum('ij,jk->ik', x, y)", "float32[2, 3]", "float32[3, 4]"),
    ("tf.linalg.einsum('bij->bji', x)", "float32[2, 3, 4]"),
    ("tf.einsum('...i,i->...', x, y, name='e')", "complex64[2, 3]", "complex64[3]"),
    ("tf.linalg.cholesky(x)", POSITIVE),
    ("tf.linalg.inv(x)", POSITIVE),
    ("tf.linalg.cross(x, y)", "float32[2, 3]", "float32[2, 3]"),
    # strings
    ("tf.strings.join([x, y])", WORDS, WORDS),
    ("tf.strings.join([x, '-', x], separator=':')", WORDS),
    ("tf.strings.format('a {} b {}', [x, y])", "int32[2]", "float32[]"),
    ("tf.strings.format('%s', x, placeholder='%s', summarize=-1)", "int32[9]"),
    ("tf.strings.length(x)", WORDS),
    ("tf.strings.length(x, unit='UTF8_CHAR')", WORDS),
    ("tf.strings.substr(x, 0, 2)", WORDS),
    ("tf.strings.reduce_join(x)", WORDS),
    ("tf.strings.reduce_join(x, axis=0, keepdims=True, separator=', ')", WORDS),
    ("tf.strings.regex_full_match(x, '.*e')", WORDS),
    ("tf.strings.regex_replace(x, pattern='[aeiou]', rewrite='_')", WORDS),
    ("tf.strings.regex_replace(x, 'e', 'E', replace_global=False)", WORDS),
    ("tf.strings.to_number(x)", np.array(["1.5", "-2"])),
    ("tf.strings.to_number(x, tf.int32)", np.array(["7", "-2"])),
    ("tf.strings.to_hash_bucket(x, 10)", WORDS),
    ("tf.strings.to_hash_bucket_fast(x, 10)", WORDS),
    ("tf.strings.unsorted_segment_join(x, y, 2, separator='+')", WORDS, np.array([1, 1])),
    ("tf.strings.upper(x)", WORDS),
    ("tf.strings.as_string(x, precision=2)", "float32[3]"),
    ("tf.fingerprint(x)", WORDS),
    ("tf.io.decode_raw(x, tf.uint8)", np.array(["abcd", "efgh"])),
    ("tf.io.decode_raw(x, tf.uint16, fixed_length=6)", np.array(["abcd", "ef"])),
    ("tf.io.serialize_tensor(x)", "float32[3]"),
    ("tf.io.parse_tensor(tf.io.serialize_tensor(x), tf.float32)", "float32[3]"),
]


@pytest.mark.parametrize(("text", "inputs"), [(text, inputs) for text, *inputs in CASES])
def test_as_tensorflow(text: str, inputs: list[Any], case: Callable[[str], Any]) -> None:
    values = [made(spec, seed) for seed, spec in enumerate(inputs)]
    case(text).check(*values, traced=True)
