"""What an action needs to know of the Python that it runs, as a provider.

Not for: how it is found (python.bzl).
"""

load("@rules_python//python:defs.bzl", "PyInfo")

EnvironmentInfo = provider(
    doc = "The Python that op libraries are built with.",
    fields = {
        "interpreter": "its path on this machine",
        "description": "a file that differs when something is installed that libraries depend on",
        "composite": "runfiles and py_info of the package composite, empty if it is installed",
        "cc": "path of the C compiler",
        "cxx": "path of the C++ compiler",
        "tensorflow": "path of the installed package",
    },
)

def _composite_environment_impl(ctx):
    package = ctx.attr.package
    return [EnvironmentInfo(
        interpreter = ctx.attr.interpreter,
        description = ctx.file.description,
        composite = struct(
            py_info = package[PyInfo],
            runfiles = package[DefaultInfo].default_runfiles,
        ),
        cc = ctx.attr.cc,
        cxx = ctx.attr.cxx,
        tensorflow = ctx.attr.tensorflow,
    )]

composite_environment = rule(
    implementation = _composite_environment_impl,
    attrs = {
        "interpreter": attr.string(mandatory = True),
        "description": attr.label(allow_single_file = True, mandatory = True),
        "package": attr.label(providers = [PyInfo], mandatory = True),
        "cc": attr.string(mandatory = True),
        "cxx": attr.string(mandatory = True),
        "tensorflow": attr.string(mandatory = True),
    },
    provides = [EnvironmentInfo],
)

def search_path(tool):
    """A PATH with which a compiler finds its parts, whatever the user's is."""
    folders = {folder: None for folder in [tool.rpartition("/")[0], "/usr/bin", "/bin"]}
    return ":".join(folders.keys())
