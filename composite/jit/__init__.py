"""Just-in-time compilation: what turns the runtime's wishes for kernels into kernels.

`worker` is the one background thread; it takes a request, asks `cache` for the kernel, has
`composite.compiler.tvm` make it if there is none, `verify` compare it with the expansion and
`measure` decide whether it is worth running. Nothing here runs in a process that only serves.
"""
