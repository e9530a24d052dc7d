"""Just-in-time compilation: background threads that make the kernels that calls request.

`worker` has the threads; composite.kernels makes, checks and measures the kernels.
"""
