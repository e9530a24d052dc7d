"""Matrices of tf.linalg: diagonals, decompositions, solvers. The others of it are one op.

tf.linalg.cholesky, inv, det, solve, qr, lu, band_part and their like need no entry.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.names import public


@public("tf.linalg.matrix_transpose")
def matrix_transpose(a: Any, name: Any = "matrix_transpose", conjugate: Any = False) -> Any:
    """Exchange the last two axes."""
    a = tf.convert_to_tensor(a)
    rank = a.shape.rank
    if rank < 2:
        raise ValueError(f"tf.linalg.matrix_transpose takes matrices, not a tensor of rank {rank}")
    perm = list(range(rank - 2)) + [rank - 1, rank - 2]
    return tf.transpose(a, perm, conjugate=conjugate)


@public("tf.linalg.adjoint")
def adjoint(matrix: Any, name: Any = None) -> Any:
    """Exchange the last two axes, and conjugate."""
    return matrix_transpose(matrix, conjugate=True)


@public("tf.linalg.diag")
def diag(
    diagonal: Any,
    name: Any = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: Any = "RIGHT_LEFT",
) -> Any:
    """Matrices with the given diagonals, padding_value elsewhere."""
    diagonal = tf.convert_to_tensor(diagonal)
    return tf.raw_ops.MatrixDiagV3(
        diagonal=diagonal,
        k=k,
        num_rows=num_rows,
        num_cols=num_cols,
        padding_value=bool(padding_value) if diagonal.dtype == tf.bool else padding_value,
        align=align,
    )


@public("tf.linalg.diag_part")
def diag_part(
    input: Any,
    name: Any = "diag_part",
    k: Any = 0,
    padding_value: Any = 0,
    align: Any = "RIGHT_LEFT",
) -> Any:
    """The diagonals of matrices."""
    input = tf.convert_to_tensor(input)
    return tf.raw_ops.MatrixDiagPartV3(
        input=input,
        k=k,
        padding_value=bool(padding_value) if input.dtype == tf.bool else padding_value,
        align=align,
    )


@public("tf.linalg.set_diag")
def set_diag(
    input: Any, diagonal: Any, name: Any = "set_diag", k: Any = 0, align: Any = "RIGHT_LEFT"
) -> Any:
    """The matrices with other diagonals."""
    return tf.raw_ops.MatrixSetDiagV3(input=input, diagonal=diagonal, k=k, align=align)


@public("tf.linalg.tensor_diag_part")
def tensor_diag_part(input: Any, name: Any = None) -> Any:
    """The diagonal of a tensor whose first axes are like its last ones."""
    return tf.raw_ops.DiagPart(input=input, name=name)


@public("tf.linalg.trace")
def trace(x: Any, name: Any = None) -> Any:
    """The sum of the diagonal of each matrix."""
    return tf.reduce_sum(diag_part(x), [-1], name=name)


@public("tf.linalg.logdet")
def logdet(matrix: Any, name: Any = None) -> Any:
    """The logarithm of the determinant of positive definite matrices."""
    diagonal = tf.math.real(diag_part(tf.raw_ops.Cholesky(input=matrix)))
    return 2.0 * tf.reduce_sum(tf.raw_ops.Log(x=diagonal), axis=[-1])


@public("tf.linalg.cholesky_solve")
def cholesky_solve(chol: Any, rhs: Any, name: Any = None) -> Any:
    """Solve A x = rhs, where chol is the lower triangle that A is the square of."""
    half = tf.raw_ops.MatrixTriangularSolve(matrix=chol, rhs=rhs, adjoint=False, lower=True)
    return tf.raw_ops.MatrixTriangularSolve(
        matrix=chol, rhs=half, adjoint=True, lower=True, name=name
    )


@public("tf.linalg.triangular_solve")
def triangular_solve(
    matrix: Any, rhs: Any, lower: Any = True, adjoint: Any = False, name: Any = None
) -> Any:
    """Solve matrix @ x = rhs, where the matrix is a triangle."""
    return tf.raw_ops.MatrixTriangularSolve(
        matrix=matrix, rhs=rhs, lower=lower, adjoint=adjoint, name=name
    )


@public("tf.linalg.svd")
def svd(tensor: Any, full_matrices: Any = False, compute_uv: Any = True, name: Any = None) -> Any:
    """Singular values; and the left and right singular vectors, if compute_uv."""
    s, u, v = tf.raw_ops.Svd(
        input=tensor, compute_uv=compute_uv, full_matrices=full_matrices, name=name
    )
    if compute_uv:
        return tf.math.real(s), u, v
    return tf.math.real(s)


@public("tf.linalg.eigh")
def eigh(tensor: Any, name: Any = None) -> Any:
    """Eigenvalues and eigenvectors of self-adjoint matrices."""
    e, v = tf.raw_ops.SelfAdjointEigV2(input=tensor, compute_v=True, name=name)
    return e, v


@public("tf.linalg.eigvalsh")
def eigvalsh(tensor: Any, name: Any = None) -> Any:
    """Eigenvalues of self-adjoint matrices."""
    e, _ = tf.raw_ops.SelfAdjointEigV2(input=tensor, compute_v=False, name=name)
    return e


@public("tf.einsum", "tf.linalg.einsum", rest="inputs")
def einsum(equation: Any, inputs: Any, optimize: Any = "greedy", name: Any = None) -> Any:
    """Sums of products of one or two tensors, by an equation such as "bij,bjk->bik"."""
    if len(inputs) > 2:
        raise ValueError(f"tf.einsum takes two tensors at most in a body, not {len(inputs)}")
    if "->" not in equation:
        raise ValueError(f"tf.einsum: write what is left, as in 'ij,jk->ik', in {equation}")
    return tf.raw_ops.Einsum(inputs=inputs, equation=equation, name=name)


@public("tf.tensordot", "tf.linalg.tensordot")
def tensordot(a: Any, b: Any, axes: Any, name: Any = None) -> Any:
    """Sum the products over pairs of axes: the last `axes` of a, or lists of axes of a and b."""
    a = tf.convert_to_tensor(a)
    b = tf.convert_to_tensor(b)
    if isinstance(axes, (list, tuple)):
        if len(axes) != 2:
            raise ValueError(f"tf.tensordot: axes is a number or two lists, not {axes}")
        left = axes[0] if isinstance(axes[0], (list, tuple)) else [axes[0]]
        right = axes[1] if isinstance(axes[1], (list, tuple)) else [axes[1]]
    else:
        if axes < 0:
            raise ValueError(f"tf.tensordot: axes cannot be negative, as {axes} is")
        left = list(range(a.shape.rank - axes, a.shape.rank))
        right = list(range(axes))
    rows, outer = _as_matrix(a, left, False)
    columns, inner = _as_matrix(b, right, True)
    return tf.reshape(tf.matmul(rows, columns), outer + inner, name=name)


def _as_matrix(x: Any, axes: Any, flipped: Any) -> Any:
    """Return x as a matrix, `axes` together its last (`flipped`: first) axis, and other dims."""
    rank = x.shape.rank
    summed = [axis + rank if axis < 0 else axis for axis in axes]
    free = [axis for axis in range(rank) if axis not in summed]
    perm = summed + free if flipped else free + summed
    size = 1
    for axis in summed:
        size = size * x.shape[axis]
    rest = 1
    for axis in free:
        rest = rest * x.shape[axis]
    matrix = tf.reshape(tf.transpose(x, perm), [size, rest] if flipped else [rest, size])
    return matrix, [x.shape[axis] for axis in free]
