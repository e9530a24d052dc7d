"""The rules behind gen_op_bindings: ops that are registered in C++, for use from Python.

The compiler is run with TensorFlow's headers where they are installed: they are part of the
environment as Python is, and there are too many of them to be copied into a sandbox.

Not for: ops with bodies (library.bzl).
"""

load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("@rules_python//python:defs.bzl", "PyInfo")
load(":environment.bzl", "EnvironmentInfo", "search_path")

OpBindingInfo = provider(
    doc = "Ops that a shared library registers with TensorFlow: it is loaded before what calls them.",
    fields = {
        "module": "the Python module that loads it",
        "py_info": "PyInfo of that",
        "runfiles": "and its files",
        "cc_info": "CcInfo, for C++ targets",
    },
)

# What tf.sysconfig.get_compile_flags() says.
_FLAGS = [
    "-std=c++17",
    "-O2",
    "-fPIC",
    "-shared",
    "-Wl,--build-id=none",
    "-DEIGEN_MAX_ALIGN_BYTES=64",
    "-D_GLIBCXX_USE_CXX11_ABI=1",
]

_WRAPPER = '''\
"""The ops of {label}. Generated; do not edit."""

from pathlib import Path

import tensorflow as tf

library = tf.load_op_library(str(Path(__file__).resolve().with_name("{file}")))

__all__ = [name for name in vars(library) if not name.startswith("_")]
globals().update({{name: vars(library)[name] for name in __all__}})
'''

def _op_binding_impl(ctx):
    environment = ctx.attr._environment[EnvironmentInfo]
    library = ctx.actions.declare_file(ctx.label.name)
    arguments = ctx.actions.args()
    arguments.add_all(_FLAGS)
    arguments.add("-isystem", environment.tensorflow + "/include")
    arguments.add("-o", library)
    arguments.add(ctx.file.src)
    arguments.add("-L", environment.tensorflow)
    arguments.add("-l:libtensorflow_framework.so.2")
    ctx.actions.run(
        executable = environment.cxx,
        arguments = [arguments],
        inputs = [ctx.file.src, environment.description],
        outputs = [library],
        env = {"PATH": search_path(environment.cxx)},
        execution_requirements = {"no-remote-exec": "1"},
        mnemonic = "CompositeBinding",
        progress_message = "Compiling op bindings %s" % ctx.label,
    )
    files = depset([library])
    return [DefaultInfo(files = files, runfiles = ctx.runfiles([library]))]

op_binding = rule(
    implementation = _op_binding_impl,
    attrs = {
        "src": attr.label(allow_single_file = [".cc"], mandatory = True),
        "_environment": attr.label(
            default = Label("@composite_python//:environment"),
            providers = [EnvironmentInfo],
        ),
    },
)

def _op_binding_wrapper_impl(ctx):
    library = ctx.file.library
    wrapper = ctx.actions.declare_file(ctx.label.name + ".py")
    ctx.actions.write(wrapper, _WRAPPER.format(label = ctx.label, file = library.basename))
    runfiles = ctx.runfiles([wrapper, library])
    py_info = PyInfo(transitive_sources = depset([wrapper]), has_py3_only_sources = True)
    return [
        DefaultInfo(files = depset([wrapper]), runfiles = runfiles),
        py_info,
        OpBindingInfo(
            module = (ctx.label.package + "/" + ctx.label.name).lstrip("/").replace("/", "."),
            py_info = py_info,
            runfiles = runfiles,
            cc_info = ctx.attr.cc[CcInfo],
        ),
    ]

op_binding_wrapper = rule(
    implementation = _op_binding_wrapper_impl,
    attrs = {
        "cc": attr.label(mandatory = True, providers = [CcInfo]),
        "library": attr.label(mandatory = True, allow_single_file = [".so"]),
    },
    provides = [PyInfo, OpBindingInfo],
)

def _op_bindings_impl(ctx):
    wrapper = ctx.attr.wrapper
    files = depset(transitive = [wrapper[DefaultInfo].files, ctx.attr.library[DefaultInfo].files])
    return [
        DefaultInfo(files = files, runfiles = wrapper[DefaultInfo].default_runfiles),
        wrapper[PyInfo],
        wrapper[OpBindingInfo],
    ]

op_bindings = rule(
    implementation = _op_bindings_impl,
    attrs = {
        "library": attr.label(mandatory = True),
        "wrapper": attr.label(mandatory = True, providers = [OpBindingInfo]),
    },
    provides = [PyInfo, OpBindingInfo],
)
