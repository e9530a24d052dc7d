"""Built libraries without TensorFlow: their kernels, called with arrays of NumPy or by DLPack.

Imports NumPy and the standard library only.
"""
