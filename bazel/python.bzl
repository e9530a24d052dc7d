"""The Python that op libraries are built and tested with, as a repository.

Not for: how a library is built with it (library.bzl).
"""

# That of the package: the rules call its command line.
VERSION = "0.1.0"

_MISSING = """There is no Python to build op libraries with. Either

  make a virtual environment .venv in the workspace, {root}, with tf-composite in it
  (python3 -m venv .venv; .venv/bin/pip install 'tf-composite[compiler,cpu]'), or
  name an interpreter that has it: --repo_env=COMPOSITE_PYTHON=/path/to/bin/python, here or in .bazelrc.
"""

_INSTALL = """{python} has {has}; these rules are those of tf-composite {version}. To install it:

  {python} -m pip install 'tf-composite[compiler,cpu]=={version}'
"""

_BUILD = """\
load("@rules_cc//cc:defs.bzl", "cc_library")
load("@rules_python//python:defs.bzl", "py_library", "py_runtime", "py_runtime_pair")
load("@tf_composite//bazel:environment.bzl", "composite_environment")

package(default_visibility = ["//visibility:public"])

py_runtime(
    name = "runtime",
    interpreter_path = "{python}",
    python_version = "PY3",
)

py_runtime_pair(
    name = "runtimes",
    py3_runtime = ":runtime",
)

# For py_test and py_binary: register_toolchains("@composite_python//:toolchain").
toolchain(
    name = "toolchain",
    toolchain = ":runtimes",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)

py_library(
    name = "composite",
    srcs = ["sitecustomize.py"],
    imports = ["."],
    deps = {package},
)

composite_environment(
    name = "environment",
    description = "environment.json",
    interpreter = "{python}",
    package = ":composite",
    cc = "{cc}",
    cxx = "{cxx}",
    tensorflow = "{tensorflow}",
)

cc_library(
    name = "tensorflow",
    srcs = glob(["lib/libtensorflow_*.so.2"]),
)

cc_library(
    name = "composite_runtime",
    srcs = ["lib/libcomposite_runtime.so"],
    deps = [":tensorflow"],
)
"""

# An editable install's own finder comes before the search path, and knows the real source tree.
_DECLARED_FIRST = """\
import sys
from importlib.machinery import PathFinder

sys.meta_path.insert(0, PathFinder)
"""

def _local_python_impl(rctx):
    root = _workspace(rctx)
    python = _interpreter(rctx, root)
    cc = _tool(rctx, "CC", "cc", "gcc")
    cxx = _tool(rctx, "CXX", "g++", "g++")
    flags = [] if rctx.attr.package else ["--package"]
    describe = rctx.path(Label("@tf_composite//bazel:describe_python.py"))
    done = rctx.execute([python, "-I", describe, cc] + flags)
    if done.return_code:
        fail("%s cannot be asked what it is:\n%s" % (python, done.stderr))
    facts = json.decode(done.stdout)
    package, composite = rctx.attr.package, facts["composite"]
    if package:
        composite = str(rctx.path(Label(package + ":__init__.py")).dirname)
    elif facts["version"] != VERSION:
        fail(_INSTALL.format(
            python = python,
            has = "tf-composite " + facts["version"] if facts["version"] else "no tf-composite",
            version = VERSION,
        ))
    if not facts["tensorflow"]:
        fail(_INSTALL.format(python = python, has = "no TensorFlow", version = VERSION))
    for library in ["libtensorflow_framework.so.2", "libtensorflow_cc.so.2"]:
        rctx.symlink(facts["tensorflow"] + "/" + library, "lib/" + library)
    rctx.symlink(composite + "/runtime/libcomposite_runtime.so", "lib/libcomposite_runtime.so")
    rctx.file("sitecustomize.py", _DECLARED_FIRST, executable = False)
    rctx.file("environment.json", json.encode(facts["environment"]) + "\n", executable = False)
    rctx.file("BUILD", executable = False, content = _BUILD.format(
        python = python,
        package = repr([package] if package else []),
        cc = cc,
        cxx = cxx,
        tensorflow = facts["tensorflow"],
    ))

def _workspace(rctx):
    """The folder of the main repository, which may have no package of that name."""
    if hasattr(rctx, "workspace_root"):
        return rctx.workspace_root

    # Bazel 4 tells it in a file of its output base alone: <output base>/external/<repository>.
    return rctx.read(rctx.path(".").dirname.dirname.get_child("DO_NOT_BUILD_HERE")).strip()

def _interpreter(rctx, root):
    """COMPOSITE_PYTHON, or the workspace's own virtual environment; never what is on the PATH."""
    named = rctx.os.environ.get("COMPOSITE_PYTHON")
    python = rctx.path(named if named else str(root) + "/.venv/bin/python")
    if python.exists:
        return str(python)
    if named:
        fail("COMPOSITE_PYTHON is %s, which is not there" % named)
    fail(_MISSING.format(root = root))

def _tool(rctx, variable, default, package):
    named = rctx.os.environ.get(variable, default)
    found = rctx.path(named) if named.startswith("/") else rctx.which(named)
    if not found or not found.exists:
        fail("The compiler '%s' is missing: apt-get install %s, or set %s" % (named, package, variable))
    return str(found)

local_python = repository_rule(
    implementation = _local_python_impl,
    attrs = {
        "package": attr.string(doc = "The package composite, if it is a target; by default the installed one."),
    },
    doc = "An interpreter that is on this machine, its TensorFlow, and tf-composite.",
    environ = ["CC", "COMPOSITE_PYTHON", "CXX", "PATH"],
    configure = True,
    local = True,  # looked at again by every server: packages come and go
)
