"""Bazel's own names, under others that another file can rename back."""

BuiltinCcInfo = CcInfo
builtin_cc_common = cc_common
