"""Libraries built ahead of time: building, loading, and which calls they have kernels for."""
