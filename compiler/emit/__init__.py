"""The texts that a build writes: C registration, Python wrapper, stubs, documentation.

Each module turns frozen descriptions (`library.LibraryOp`, `library.LibraryKernel`) into one text
and does nothing else: no files, no compiler, no TensorFlow. The same descriptions always give the
same text.
"""
