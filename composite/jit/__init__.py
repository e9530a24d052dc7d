"""Just-in-time compilation: background threads that make the kernels that calls ask for.

`worker` is that thread. Kernels themselves are the subject of composite.kernels.
"""
