"""Intersection over union of boxes: Everingham et al. 2010, doi:10.1007/s11263-009-0275-4."""

import tensorflow as tf

from composite import Composite
from examples.gallery.precision import FLOATS


def area(top_left, bottom_right):
    """The area between two corners [..., 2]; 0 where they are the wrong way around."""
    height, width = tf.unstack(tf.nn.relu(bottom_right - top_left), num=2, axis=-1)
    return height * width


@Composite("BoxIou", inputs=["boxes: T", "others: T"], derived_attrs=FLOATS, outputs=["iou: T"])
def box_iou(boxes, others):
    """The share of the common area of each two boxes in the area that they cover.

    Args:
        boxes: [n, 4], corners y0, x0, y1, x1.
        others: [m, 4], in the same order.

    Returns:
        [n, m], from 0 to 1; 0 for two boxes without area.
    """
    boxes = boxes[:, None]
    top_left = tf.maximum(boxes[..., :2], others[:, :2])
    bottom_right = tf.minimum(boxes[..., 2:], others[:, 2:])
    common = area(top_left, bottom_right)
    areas = area(boxes[..., :2], boxes[..., 2:]) + area(others[:, :2], others[:, 2:])
    return tf.math.divide_no_nan(common, areas - common)
