"""Simple functions of tf.image: flips, crops, gray, brightness. Its codecs are one op each."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.names import public


def _image(image: Any) -> Any:
    """Return an image or a batch of them as a tensor."""
    image = tf.convert_to_tensor(image)
    if image.shape.rank not in (3, 4):
        raise ValueError(f"an image has rank 3, a batch of them rank 4: not shape {image.shape}")
    return image


@public("tf.image.flip_left_right")
def flip_left_right(image: Any) -> Any:
    """Mirror an image, or a batch of them: the columns in the opposite order."""
    image = _image(image)
    return tf.raw_ops.ReverseV2(tensor=image, axis=[image.shape.rank - 2])


@public("tf.image.flip_up_down")
def flip_up_down(image: Any) -> Any:
    """Turn an image, or a batch of them, over: the rows in the opposite order."""
    image = _image(image)
    return tf.raw_ops.ReverseV2(tensor=image, axis=[image.shape.rank - 3])


@public("tf.image.transpose")
def transpose(image: Any, name: Any = None) -> Any:
    """Exchange rows and columns of an image, or of a batch of them."""
    image = _image(image)
    if image.shape.rank == 3:
        return tf.transpose(image, [1, 0, 2], name=name)
    return tf.transpose(image, [0, 2, 1, 3], name=name)


@public("tf.image.grayscale_to_rgb")
def grayscale_to_rgb(images: Any, name: Any = None) -> Any:
    """Repeat the one channel three times."""
    images = tf.convert_to_tensor(images)
    if not images.shape[-1:].is_compatible_with([1]):
        raise ValueError(f"tf.image.grayscale_to_rgb: the last dim is 1, not shape {images.shape}")
    multiples = [1] * (images.shape.rank - 1) + [3]
    return tf.raw_ops.Tile(input=images, multiples=multiples, name=name)


@public("tf.image.crop_to_bounding_box")
def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Any:
    """Cut a rectangle out of an image, or of each image of a batch."""
    image = _image(image)
    for target in (target_height, target_width):
        if not isinstance(target, tf.Tensor) and target <= 0:
            raise ValueError(f"tf.image.crop_to_bounding_box: a target is above 0, not {target}")
    if image.shape.rank == 3:
        begin = [offset_height, offset_width, 0]
        return tf.raw_ops.Slice(input=image, begin=begin, size=[target_height, target_width, -1])
    begin = [0, offset_height, offset_width, 0]
    return tf.raw_ops.Slice(input=image, begin=begin, size=[-1, target_height, target_width, -1])


@public("tf.image.pad_to_bounding_box")
def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Any:
    """Put an image, or each image of a batch, into a larger one of zeros."""
    image = _image(image)
    first = image.shape.rank - 3
    below = target_height - offset_height - image.shape[first]
    right = target_width - offset_width - image.shape[first + 1]
    pairs = [[offset_height, below], [offset_width, right], [0, 0]]
    return tf.raw_ops.Pad(input=image, paddings=[[0, 0]] * first + pairs)


@public("tf.image.image_gradients")
def image_gradients(image: Any) -> Any:
    """The differences of neighbouring rows and of neighbouring columns of a batch of images."""
    image = tf.convert_to_tensor(image)
    if image.shape.rank != 4:
        raise ValueError(f"tf.image.image_gradients takes a batch, not rank {image.shape.rank}")
    down = tf.pad(image[:, 1:, :, :] - image[:, :-1, :, :], [[0, 0], [0, 1], [0, 0], [0, 0]])
    right = tf.pad(image[:, :, 1:, :] - image[:, :, :-1, :], [[0, 0], [0, 0], [0, 1], [0, 0]])
    return down, right


@public("tf.image.total_variation")
def total_variation(images: Any, name: Any = None) -> Any:
    """The sum of the distances of neighbouring pixels of each image."""
    images = _image(images)
    if images.shape.rank == 3:
        down = images[1:, :, :] - images[:-1, :, :]
        right = images[:, 1:, :] - images[:, :-1, :]
        return tf.raw_ops.AddV2(
            x=tf.reduce_sum(tf.abs(down)), y=tf.reduce_sum(tf.abs(right)), name=name
        )
    down = images[:, 1:, :, :] - images[:, :-1, :, :]
    right = images[:, :, 1:, :] - images[:, :, :-1, :]
    rows = tf.reduce_sum(tf.abs(down), axis=[1, 2, 3])
    return tf.raw_ops.AddV2(x=rows, y=tf.reduce_sum(tf.abs(right), axis=[1, 2, 3]), name=name)


@public("tf.image.extract_patches")
def extract_patches(
    images: Any, sizes: Any, strides: Any, rates: Any, padding: Any, name: Any = None
) -> Any:
    """Windows of images, each as one vector of channels."""
    return tf.raw_ops.ExtractImagePatches(
        images=images, ksizes=sizes, strides=strides, rates=rates, padding=padding, name=name
    )


@public("tf.image.crop_and_resize")
def crop_and_resize(
    image: Any,
    boxes: Any,
    box_indices: Any,
    crop_size: Any,
    method: Any = "bilinear",
    extrapolation_value: Any = 0.0,
    name: Any = None,
) -> Any:
    """Rectangles cut out of a batch of images, all brought to one size."""
    return tf.raw_ops.CropAndResize(
        image=image,
        boxes=boxes,
        box_ind=box_indices,
        crop_size=crop_size,
        method=method,
        extrapolation_value=extrapolation_value,
        name=name,
    )
