"""Whether the rows of invariant kernels have the same bits in any batch."""
