"""Mirror padding and its adjoint, written from slices, reversals and sums along one axis a time."""

import tensorflow as tf

from composite import Composite


def window(x, axis, start, count):
    """The `count` entries of x along one axis that begin at `start`."""
    axes = range(len(x.shape))
    begin = [start if i == axis else 0 for i in axes]
    size = [count if i == axis else -1 for i in axes]  # -1: all there is
    return tf.slice(x, begin, size)


def placed(x, axis, before, after):
    """Zeros around x, so many before and after it along one axis."""
    axes = range(len(x.shape))
    return tf.raw_ops.Pad(
        input=x, paddings=[[before, after] if i == axis else [0, 0] for i in axes]
    )


@Composite(
    "ComposedMirrorPad",
    inputs=["x: T", "paddings: Tpaddings"],
    attrs=['mode: {"REFLECT", "SYMMETRIC"}'],
    derived_attrs=["T: type", "Tpaddings: {int32, int64} = DT_INT32"],
    outputs=["o: T"],
)
def composed_mirror_pad(x, paddings, mode):
    """Pads each axis with its own entries, mirrored at the border.

    Args:
        x: of any rank, which must be known.
        paddings: [rank, 2], the widths before and after each axis; at most the size of the axis,
            and one less for "REFLECT".
        mode: whether the border itself is repeated ("SYMMETRIC") or not ("REFLECT").

    Returns:
        The padded tensor.
    """
    border = 1 if mode == "REFLECT" else 0
    for axis in range(len(x.shape)):
        before, after = paddings[axis, 0], paddings[axis, 1]
        size = tf.shape(x, out_type=paddings.dtype)[axis]
        head = window(x, axis, border, before)
        tail = window(x, axis, size - border - after, after)
        x = tf.concat([tf.reverse(head, [axis]), x, tf.reverse(tail, [axis])], axis)
    return x


@Composite(
    "ComposedMirrorPadGrad",
    inputs=["dy: T", "paddings: Tpaddings"],
    attrs=['mode: {"REFLECT", "SYMMETRIC"}'],
    derived_attrs=["T: type", "Tpaddings: {int32, int64} = DT_INT32"],
    outputs=["dx: T"],
)
def composed_mirror_pad_grad(dy, paddings, mode):
    """Adds what was padded back to where it was copied from: the adjoint of ComposedMirrorPad.

    Args:
        dy: like the result of the padding.
        paddings: [rank, 2], as they were given to it.
        mode: as it was given to it.

    Returns:
        What the entries of the tensor that was padded receive.
    """
    border = 1 if mode == "REFLECT" else 0
    for axis in range(len(dy.shape)):
        before, after = paddings[axis, 0], paddings[axis, 1]
        size = tf.shape(dy, out_type=paddings.dtype)[axis] - before - after
        head = tf.reverse(window(dy, axis, 0, before), [axis])
        tail = tf.reverse(window(dy, axis, before + size, after), [axis])
        dy = window(dy, axis, before, size)
        dy += placed(head, axis, border, size - border - before)
        dy += placed(tail, axis, size - border - after, border)
    return dy
