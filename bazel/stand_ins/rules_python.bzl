"""The Python rules that Bazel 4 has built in, under the names of rules_python."""

load("@bazel_tools//tools/python:toolchain.bzl", _py_runtime_pair = "py_runtime_pair")
load(":builtin.bzl", "BuiltinPyInfo")

PyInfo = BuiltinPyInfo
py_binary = native.py_binary
py_library = native.py_library
py_runtime = native.py_runtime
py_runtime_pair = _py_runtime_pair
py_test = native.py_test
