"""CcInfo, which Bazel 4 has built in, under the name of rules_cc."""

load(":builtin.bzl", "BuiltinCcInfo")

CcInfo = BuiltinCcInfo
