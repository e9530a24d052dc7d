"""Bazel's own provider, under a name that another file can rename back."""

BuiltinPyInfo = PyInfo
