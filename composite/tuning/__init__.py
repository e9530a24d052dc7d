"""Tuning: the choices of a kernel's strategies, searched by measuring, and kept in a file.

`tune` conducts: `space` has the kernels that can be made of a request, `search` says which to try
next, `local` and `remote` measure one beside the default kernel. What was found is kept in
`composite.kernels.tuned`, and `composite.kernels.chosen` is asked by whoever compiles. Only `tune`
compiles or measures; a process that finds a record reads a file.
"""
