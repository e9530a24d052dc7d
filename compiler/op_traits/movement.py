"""Traits of ops that move data, and of those that compute with shapes and places."""

from __future__ import annotations

from .traits import OpTraits, Read, reads

_DIAGONALS = "one diagonal, of a known number; of matrices of known size, unless square and main"

ROWS = (
    # One operand, another shape; constants.
    OpTraits(
        "Const",
        "data",
        structural=True,
        limits="at most 4096 elements, unless all are equal",
        reads=reads(),
    ),
    OpTraits("Identity", "data", structural=True, elementwise=True, reads=reads(input=Read.MOVED)),
    OpTraits(
        "Cast", "data", limits="no `Truncate`, no float to uint32 or uint64", elementwise=True
    ),
    OpTraits("ZerosLike", "data", elementwise=True, reads=reads(x=Read.SHAPE)),
    OpTraits("OnesLike", "data", elementwise=True, reads=reads(x=Read.SHAPE)),
    OpTraits("Fill", "data", reads=reads(dims=Read.INDEX, value=Read.MOVED)),
    OpTraits("BroadcastTo", "data", reads=reads(input=Read.MOVED, shape=Read.INDEX)),
    OpTraits("Tile", "data", reads=reads(input=Read.MOVED, multiples=Read.INDEX)),
    OpTraits("Reshape", "data", reads=reads(tensor=Read.MOVED, shape=Read.INDEX)),
    OpTraits("ExpandDims", "data", reads=reads(input=Read.MOVED, dim=Read.INDEX)),
    OpTraits("Squeeze", "data", limits="without axes: known dims", reads=reads(input=Read.MOVED)),
    OpTraits("Transpose", "data", reads=reads(x=Read.MOVED, perm=Read.INDEX)),
    OpTraits("StopGradient", "data", elementwise=True, reads=reads(input=Read.MOVED)),
    OpTraits("IdentityN", "data", reads=reads(input=Read.MOVED)),
    OpTraits("PreventGradient", "data", elementwise=True, reads=reads(input=Read.MOVED)),
    OpTraits("Snapshot", "data", elementwise=True, reads=reads(input=Read.MOVED)),
    OpTraits("EnsureShape", "data", reads=reads(input=Read.MOVED)),
    # Several operands to one, and paddings.
    OpTraits(
        "Concat",
        "joining",
        limits="at most 64 tensors",
        reads=reads(concat_dim=Read.INDEX, values=Read.MOVED),
    ),
    OpTraits(
        "ConcatV2",
        "joining",
        limits="at most 64 tensors",
        reads=reads(values=Read.MOVED, axis=Read.INDEX),
    ),
    OpTraits("ConcatOffset", "joining", limits="known sizes"),
    OpTraits("Pack", "joining", limits="at most 64 tensors", reads=reads(values=Read.MOVED)),
    OpTraits("Pad", "joining", reads=reads(input=Read.MOVED, paddings=Read.INDEX)),
    OpTraits(
        "PadV2",
        "joining",
        reads=reads(input=Read.MOVED, paddings=Read.INDEX, constant_values=Read.MOVED),
    ),
    OpTraits("MirrorPad", "joining", reads=reads(input=Read.MOVED, paddings=Read.INDEX)),
    OpTraits("MirrorPadGrad", "joining", reads=reads(input=Read.VALUES, paddings=Read.INDEX)),
    OpTraits(
        "StridedSliceGrad",
        "joining",
        reads=reads(
            shape=Read.INDEX, begin=Read.INDEX, end=Read.INDEX, strides=Read.INDEX, dy=Read.MOVED
        ),
    ),
    # Blocks of images.
    OpTraits("SpaceToDepth", "blocks", reads=reads(input=Read.MOVED)),
    OpTraits("DepthToSpace", "blocks", reads=reads(input=Read.MOVED)),
    OpTraits(
        "SpaceToBatchND",
        "blocks",
        limits="known sizes of what has blocks",
        reads=reads(input=Read.MOVED, block_shape=Read.INDEX, paddings=Read.INDEX),
    ),
    OpTraits(
        "BatchToSpaceND",
        "blocks",
        reads=reads(input=Read.MOVED, block_shape=Read.INDEX, crops=Read.INDEX),
    ),
    # Lists of tensors.
    OpTraits(
        "TensorListReserve",
        "lists",
        limits="elements of known rank",
        reads=reads(element_shape=Read.INDEX, num_elements=Read.INDEX),
    ),
    OpTraits(
        "TensorListFromTensor",
        "lists",
        limits="no scalars",
        reads=reads(tensor=Read.MOVED, element_shape=Read.INDEX),
    ),
    OpTraits(
        "TensorListSetItem",
        "lists",
        limits="in a loop, one a trip",
        reads=reads(input_handle=Read.MOVED, index=Read.INDEX, item=Read.MOVED),
    ),
    OpTraits(
        "TensorListGetItem",
        "lists",
        limits="in a loop that sets elements, before it sets the same one",
        reads=reads(input_handle=Read.MOVED, index=Read.INDEX, element_shape=Read.INDEX),
    ),
    OpTraits(
        "TensorListStack",
        "lists",
        limits="behind the loop that sets the elements",
        reads=reads(input_handle=Read.MOVED, element_shape=Read.INDEX),
    ),
    OpTraits("TensorListLength", "lists", reads=reads(input_handle=Read.SHAPE)),
    OpTraits("TensorListElementShape", "lists", reads=reads(input_handle=Read.SHAPE)),
    OpTraits(
        "EmptyTensorList",
        "lists",
        reads=reads(element_shape=Read.INDEX, max_num_elements=Read.INDEX),
    ),
    OpTraits(
        "TensorListPushBack",
        "lists",
        limits="in a loop, one a trip",
        reads=reads(input_handle=Read.MOVED, tensor=Read.MOVED),
    ),
    OpTraits(
        "TensorListPopBack",
        "lists",
        limits="in a loop, one a trip",
        reads=reads(input_handle=Read.MOVED, element_shape=Read.INDEX),
        outputs=("output_handle", "tensor"),
    ),
    # What the gradient of a branch reads of the branch that was taken.
    OpTraits("OptionalFromValue", "lists", limits="one tensor", reads=reads(components=Read.MOVED)),
    OpTraits("OptionalNone", "lists"),
    OpTraits("OptionalGetValue", "lists", reads=reads(optional=Read.MOVED)),
    # Parts of an operand.
    OpTraits(
        "Slice",
        "slicing",
        limits="size known",
        reads=reads(input=Read.MOVED, begin=Read.INDEX, size=Read.INDEX),
    ),
    OpTraits(
        "StridedSlice",
        "slicing",
        limits="begin, end and strides known, but for the index of a dimension that vanishes",
        reads=reads(input=Read.MOVED, begin=Read.INDEX, end=Read.INDEX, strides=Read.INDEX),
    ),
    OpTraits(
        "XlaDynamicSlice",
        "slicing",
        limits="size known",
        reads=reads(input=Read.MOVED, start_indices=Read.INDEX, size_indices=Read.INDEX),
    ),
    OpTraits("Reverse", "slicing", reads=reads(tensor=Read.MOVED, dims=Read.INDEX)),
    OpTraits("ReverseV2", "slicing", reads=reads(tensor=Read.MOVED, axis=Read.INDEX)),
    OpTraits(
        "Split",
        "slicing",
        limits="along a dimension that is known to divide",
        reads=reads(split_dim=Read.INDEX, value=Read.MOVED),
    ),
    OpTraits(
        "SplitV",
        "slicing",
        reads=reads(value=Read.MOVED, size_splits=Read.INDEX, split_dim=Read.INDEX),
    ),
    OpTraits("Unpack", "slicing", reads=reads(value=Read.MOVED)),
    OpTraits(
        "Roll",
        "slicing",
        limits="shift known",
        reads=reads(input=Read.MOVED, shift=Read.INDEX, axis=Read.INDEX),
    ),
    # Another's part in an operand.
    OpTraits(
        "XlaDynamicUpdateSlice",
        "scattering",
        reads=reads(input=Read.MOVED, update=Read.MOVED, indices=Read.INDEX),
    ),
    OpTraits(
        "TensorScatterUpdate",
        "scattering",
        limits="at most 4 updates",
        reads=reads(tensor=Read.MOVED, indices=Read.INDEX, updates=Read.MOVED),
    ),
    # By the place alone.
    OpTraits("Range", "places", limits="known bounds; of an unknown size in steps of 1"),
    OpTraits(
        "MatrixBandPart",
        "places",
        limits="known bands",
        reads=reads(input=Read.MOVED, num_lower=Read.INDEX, num_upper=Read.INDEX),
    ),
    OpTraits(
        "MatrixDiagPartV3",
        "places",
        limits=_DIAGONALS,
        reads=reads(input=Read.MOVED, k=Read.INDEX, padding_value=Read.MOVED),
    ),
    OpTraits(
        "MatrixDiagV3",
        "places",
        limits=_DIAGONALS,
        reads=reads(
            diagonal=Read.MOVED,
            k=Read.INDEX,
            num_rows=Read.INDEX,
            num_cols=Read.INDEX,
            padding_value=Read.MOVED,
        ),
    ),
    OpTraits(
        "MatrixSetDiagV3",
        "places",
        limits=_DIAGONALS,
        reads=reads(input=Read.MOVED, diagonal=Read.MOVED, k=Read.INDEX),
    ),
    # Elements by their indices.
    OpTraits("Gather", "gathering", reads=reads(params=Read.MOVED, indices=Read.INDEX)),
    OpTraits(
        "GatherV2", "gathering", reads=reads(params=Read.MOVED, indices=Read.INDEX, axis=Read.INDEX)
    ),
    OpTraits(
        "GatherNd",
        "gathering",
        limits="indices of known depth",
        reads=reads(params=Read.MOVED, indices=Read.INDEX),
    ),
    OpTraits(
        "OneHot",
        "gathering",
        reads=reads(
            indices=Read.INDEX, depth=Read.INDEX, on_value=Read.MOVED, off_value=Read.MOVED
        ),
    ),
    # Shapes, and arithmetic on them.
    OpTraits("Shape", "static", reads=reads(input=Read.SHAPE)),
    OpTraits("ShapeN", "static", reads=reads(input=Read.SHAPE)),
    OpTraits("Size", "static", reads=reads(input=Read.SHAPE)),
    OpTraits("Rank", "static", reads=reads(input=Read.SHAPE)),
    OpTraits("BroadcastArgs", "static", limits="known sizes"),
    OpTraits("BroadcastGradientArgs", "static", limits="known sizes", outputs=("r0", "r1")),
    OpTraits("ListDiff", "static", limits="known sizes", outputs=("out", "idx")),
    OpTraits(
        "DynamicStitch",
        "static",
        limits="known sizes",
        reads=reads(indices=Read.INDEX, data=Read.MOVED),
    ),
    OpTraits("InvertPermutation", "static", limits="known sizes"),
)
