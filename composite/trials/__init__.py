"""Trial calls of functions: drawn inputs, and how far results differ."""
