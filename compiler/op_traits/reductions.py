"""Traits of ops that make an element of a result from many of an operand."""

from __future__ import annotations

from .traits import InnerDim, OpTraits, Read, Terms, reads

ROWS = (
    # Matrix products.
    OpTraits("MatMul", "contraction", terms=InnerDim("transpose_a")),
    OpTraits("BatchMatMul", "contraction", terms=InnerDim("adj_x")),
    OpTraits("BatchMatMulV2", "contraction", terms=InnerDim("adj_x")),
    OpTraits(
        "BatchMatMulV3",
        "contraction",
        limits="one dtype for both factors and the product",
        terms=InnerDim("adj_x"),
    ),
    OpTraits(
        "Einsum",
        "einsum",
        limits="no label twice in a term",
        terms=Terms.EQUATION,
    ),
    # Convolutions.
    OpTraits("Conv2D", "convolution", limits="NHWC, filters of known size", terms=Terms.WINDOW),
    OpTraits("DepthwiseConv2dNative", "convolution", limits="NHWC, filters of known size"),
    OpTraits(
        "Conv2DBackpropInput",
        "convolution",
        limits="filters that are finite, where windows overlap; strides that divide the filter, "
        "or whose product is at most 4",
        reads=reads(input_sizes=Read.INDEX, filter=Read.VALUES, out_backprop=Read.VALUES),
    ),
    OpTraits(
        "Conv2DBackpropFilter",
        "convolution",
        reads=reads(input=Read.VALUES, filter_sizes=Read.INDEX, out_backprop=Read.VALUES),
    ),
    OpTraits(
        "DepthwiseConv2dNativeBackpropInput",
        "convolution",
        limits="NHWC",
        reads=reads(input_sizes=Read.INDEX, filter=Read.VALUES, out_backprop=Read.VALUES),
    ),
    OpTraits(
        "DepthwiseConv2dNativeBackpropFilter",
        "convolution",
        limits="NHWC",
        reads=reads(input=Read.VALUES, filter_sizes=Read.INDEX, out_backprop=Read.VALUES),
    ),
    # Normalization.
    OpTraits(
        "FusedBatchNormV3",
        "normalization",
        limits="NHWC, no `exponential_avg_factor`",
        outputs=(
            "y",
            "batch_mean",
            "batch_variance",
            "reserve_space_1",
            "reserve_space_2",
            "reserve_space_3",
        ),
    ),
    OpTraits(
        "FusedBatchNormGradV3",
        "normalization",
        limits="NHWC",
        outputs=(
            "x_backprop",
            "scale_backprop",
            "offset_backprop",
            "reserve_space_4",
            "reserve_space_5",
        ),
    ),
    # Pooling.
    OpTraits("MaxPool", "pooling", limits="NHWC"),
    OpTraits("AvgPool", "pooling", limits="NHWC"),
    OpTraits("MaxPoolGrad", "pooling", jumps=True),
    OpTraits("AvgPoolGrad", "pooling", reads=reads(orig_input_shape=Read.INDEX, grad=Read.VALUES)),
    # Volumes.
    OpTraits("Conv3D", "volumes", limits="NDHWC, filters of known size", terms=Terms.WINDOW),
    OpTraits(
        "Conv3DBackpropInputV2",
        "volumes",
        limits="NDHWC, filters that are finite; strides as for images, of height and width",
        reads=reads(input_sizes=Read.INDEX, filter=Read.VALUES, out_backprop=Read.VALUES),
    ),
    OpTraits(
        "Conv3DBackpropFilterV2",
        "volumes",
        limits="NDHWC",
        reads=reads(input=Read.VALUES, filter_sizes=Read.INDEX, out_backprop=Read.VALUES),
    ),
    OpTraits("MaxPool3D", "volumes", limits="NDHWC"),
    OpTraits("AvgPool3D", "volumes", limits="NDHWC"),
    OpTraits("MaxPool3DGrad", "volumes", limits="NDHWC", jumps=True),
    OpTraits(
        "AvgPool3DGrad",
        "volumes",
        limits="NDHWC",
        reads=reads(orig_input_shape=Read.INDEX, grad=Read.VALUES),
    ),
    # Images of another size.
    OpTraits(
        "ResizeNearestNeighbor",
        "resizing",
        limits="known sizes",
        reads=reads(images=Read.MOVED, size=Read.INDEX),
    ),
    OpTraits(
        "ResizeBilinear",
        "resizing",
        limits="known sizes",
        reads=reads(images=Read.VALUES, size=Read.INDEX),
    ),
    # Reductions.
    OpTraits(
        "Sum",
        "reduction",
        reads=reads(input=Read.VALUES, reduction_indices=Read.INDEX),
        terms=Terms.REDUCED,
    ),
    OpTraits(
        "Mean",
        "reduction",
        reads=reads(input=Read.VALUES, reduction_indices=Read.INDEX),
        terms=Terms.REDUCED,
    ),
    OpTraits(
        "Max",
        "reduction",
        reads=reads(input=Read.VALUES, reduction_indices=Read.INDEX),
        terms=Terms.REDUCED,
    ),
    OpTraits(
        "Min",
        "reduction",
        reads=reads(input=Read.VALUES, reduction_indices=Read.INDEX),
        terms=Terms.REDUCED,
    ),
    OpTraits(
        "Prod",
        "reduction",
        reads=reads(input=Read.VALUES, reduction_indices=Read.INDEX),
        terms=Terms.REDUCED,
    ),
    OpTraits("All", "reduction", reads=reads(input=Read.VALUES, reduction_indices=Read.INDEX)),
    OpTraits("Any", "reduction", reads=reads(input=Read.VALUES, reduction_indices=Read.INDEX)),
    OpTraits("L2Loss", "reduction"),
    OpTraits("ArgMax", "reduction", reads=reads(input=Read.VALUES, dimension=Read.INDEX)),
    OpTraits("ArgMin", "reduction", reads=reads(input=Read.VALUES, dimension=Read.INDEX)),
    OpTraits("BiasAddGrad", "reduction"),
    OpTraits(
        "TopKV2",
        "largest",
        limits="k of 1 to 8, sorted; the expansion runs where a row has a NaN",
        reads=reads(input=Read.VALUES, k=Read.INDEX),
        outputs=("values", "indices"),
        jumps=True,
    ),
    # Scans.
    OpTraits("Cumsum", "scanning", reads=reads(x=Read.VALUES, axis=Read.INDEX)),
    OpTraits("Cumprod", "scanning", reads=reads(x=Read.VALUES, axis=Read.INDEX)),
    OpTraits(
        "CumulativeLogsumexp",
        "scanning",
        limits="loses the NaNs that TensorFlow's loses",
        reads=reads(x=Read.VALUES, axis=Read.INDEX),
    ),
    # Scatters, which combine what has one place.
    *(
        OpTraits(
            f"UnsortedSegment{kind}",
            "scattering",
            reads=reads(data=Read.VALUES, segment_ids=Read.INDEX, num_segments=Read.INDEX),
        )
        for kind in ("Sum", "Max", "Min", "Prod")
    ),
    OpTraits(
        "ScatterNd",
        "scattering",
        reads=reads(indices=Read.INDEX, updates=Read.VALUES, shape=Read.INDEX),
    ),
    OpTraits(
        "TensorScatterAdd",
        "scattering",
        reads=reads(tensor=Read.VALUES, indices=Read.INDEX, updates=Read.VALUES),
    ),
    OpTraits(
        "TensorScatterSub",
        "scattering",
        reads=reads(tensor=Read.VALUES, indices=Read.INDEX, updates=Read.VALUES),
    ),
    # Softmax and losses.
    OpTraits("Softmax", "softmax", operations=30),
    OpTraits("LogSoftmax", "softmax", operations=30),
    OpTraits(
        "SoftmaxCrossEntropyWithLogits", "softmax", outputs=("loss", "backprop"), operations=40
    ),
    OpTraits(
        "SparseSoftmaxCrossEntropyWithLogits",
        "softmax",
        operations=40,
        reads=reads(features=Read.VALUES, labels=Read.INDEX),
        outputs=("loss", "backprop"),
    ),
)
