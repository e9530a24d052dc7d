"""Just-in-time compilation: one background thread that makes the kernels that calls ask for.

`worker` is that thread; `recording` writes down what is asked for. Kernels themselves are the
subject of composite.kernels.
"""
