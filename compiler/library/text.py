"""Strings of tf.strings, and bytes of tf.io. tf.strings.lower, upper, strip are one op each."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from composite.compiler.library.names import public


@public("tf.strings.join")
def join(inputs: Any, separator: Any = "", name: Any = None) -> Any:
    """Join the strings of a list of tensors, element by element."""
    return tf.raw_ops.StringJoin(inputs=inputs, separator=separator, name=name)


@public("tf.strings.format")
def format_(
    template: Any, inputs: Any, placeholder: Any = "{}", summarize: Any = 3, name: Any = None
) -> Any:
    """A string in which each placeholder is a tensor of the list, in order, as text."""
    tensors = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    return tf.raw_ops.StringFormat(
        inputs=tensors,
        template=template,
        placeholder=placeholder,
        summarize=summarize,
        name=name,
    )


@public("tf.strings.length")
def length(input: Any, unit: Any = "BYTE", name: Any = None) -> Any:
    """The lengths of strings, in bytes or in characters of UTF-8."""
    return tf.raw_ops.StringLength(input=input, unit=unit, name=name)


@public("tf.strings.substr")
def substr(input: Any, pos: Any, len: Any, unit: Any = "BYTE", name: Any = None) -> Any:
    """Parts of strings, of a length, from a position on."""
    return tf.raw_ops.Substr(input=input, pos=pos, len=len, unit=unit, name=name)


@public("tf.strings.reduce_join")
def reduce_join(
    inputs: Any, axis: Any = None, keepdims: Any = False, separator: Any = "", name: Any = None
) -> Any:
    """Join the strings along axes, by default all."""
    inputs = tf.convert_to_tensor(inputs)
    if axis is None:
        axis = tf.raw_ops.Range(start=inputs.shape.rank - 1, limit=-1, delta=-1)
    return tf.raw_ops.ReduceJoin(
        inputs=inputs,
        reduction_indices=axis,
        keep_dims=bool(keepdims),
        separator=separator,
        name=name,
    )


@public("tf.strings.regex_full_match")
def regex_full_match(input: Any, pattern: Any, name: Any = None) -> Any:
    """Whether each string matches the pattern as a whole."""
    return tf.raw_ops.RegexFullMatch(input=input, pattern=pattern, name=name)


@public("tf.strings.regex_replace")
def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: Any = True, name: Any = None
) -> Any:
    """Replace what matches the pattern, everywhere or where it first does."""
    return tf.raw_ops.RegexReplace(
        input=input, pattern=pattern, rewrite=rewrite, replace_global=replace_global, name=name
    )


@public("tf.strings.to_number")
def to_number(input: Any, out_type: Any = tf.float32, name: Any = None) -> Any:
    """The numbers that strings are."""
    return tf.raw_ops.StringToNumber(string_tensor=input, out_type=out_type, name=name)


@public("tf.strings.to_hash_bucket")
def to_hash_bucket(input: Any, num_buckets: Any, name: Any = None) -> Any:
    """The buckets of strings, by a hash that differs between platforms."""
    return tf.raw_ops.StringToHashBucket(string_tensor=input, num_buckets=num_buckets, name=name)


@public("tf.strings.unsorted_segment_join")
def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: Any = "", name: Any = None
) -> Any:
    """Join the strings of each segment."""
    return tf.raw_ops.UnsortedSegmentJoin(
        inputs=inputs,
        segment_ids=segment_ids,
        num_segments=num_segments,
        separator=separator,
        name=name,
    )


@public("tf.fingerprint")
def fingerprint(data: Any, method: Any = "farmhash64", name: Any = None) -> Any:
    """A fingerprint of each row, as 8 bytes."""
    return tf.raw_ops.Fingerprint(data=data, method=method, name=name)


@public("tf.io.decode_raw")
def decode_raw(
    input_bytes: Any,
    out_type: Any,
    little_endian: Any = True,
    fixed_length: Any = None,
    name: Any = None,
) -> Any:
    """The bytes of strings as numbers."""
    if fixed_length is None:
        return tf.raw_ops.DecodeRaw(
            bytes=input_bytes, out_type=out_type, little_endian=little_endian, name=name
        )
    return tf.raw_ops.DecodePaddedRaw(
        input_bytes=input_bytes,
        fixed_length=fixed_length,
        out_type=out_type,
        little_endian=little_endian,
        name=name,
    )


@public("tf.io.serialize_tensor")
def serialize_tensor(tensor: Any, name: Any = None) -> Any:
    """A tensor as a string, which tf.io.parse_tensor reads."""
    return tf.raw_ops.SerializeTensor(tensor=tensor, name=name)
