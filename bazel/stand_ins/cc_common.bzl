"""cc_common, which Bazel 4 has built in, under the name of rules_cc."""

load(":builtin.bzl", "builtin_cc_common")

cc_common = builtin_cc_common
