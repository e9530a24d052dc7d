"""Parts of measuring kernels: the inputs, and what code of XLA takes with a kernel and without."""
