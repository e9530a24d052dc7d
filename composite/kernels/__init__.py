"""Makes, checks, measures and stores kernels, just in time and ahead of time.

`tuned` reads and writes the results of tuning, and `chosen` selects the choices that a kernel is
compiled with. Compilation reads them; `composite.tuning` writes them.
"""
