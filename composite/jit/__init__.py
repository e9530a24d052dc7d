"""Just-in-time compilation: one background thread that makes the kernels that calls ask for.

`worker` is that thread. Kernels themselves are the subject of composite.kernels.
"""
