"""Op libraries for Bazel: gen_op_libraries and gen_op_bindings. See docs/bazel.md."""

load("//bazel:bindings.bzl", "op_binding", "op_binding_wrapper", "op_bindings")
load(
    "//bazel:library.bzl",
    "op_library",
    "op_library_cc_deps",
    "op_library_file",
    "op_library_sources",
    "op_library_wrapper",
)
load("@rules_cc//cc:defs.bzl", "cc_import", "cc_library")

def gen_op_libraries(
        name,
        src,
        deps = [],
        targets = [],
        tags = [],
        test = False,
        signatures = None,
        tuned = None,
        kinds = None,
        visibility = None):
    """A library of the composite ops of a Python file, compiled ahead of time.

    Defines
      <name>             a py_library of what serves the ops: wrappers, kernels, no compiler;
      gen_<name>         gen_<name>.py alone, a module with a function for each op;
      <name>.so          the shared library, which registers ops and kernels when it is loaded;
      <name>_cc          the same for C++ targets to depend on;
      registered_<name>  the C source of the registration;
      <name>_mlir        the ops' bodies, TFR modules as text;
      <name>_py          a py_library of src, for what needs the Python functions.

    Args:
      name: of the library, an identifier.
      src: the Python file that defines the ops.
      deps: what src imports: py_library targets, and other op libraries whose ops it calls. Their
        sources can be imported, `from package.ops import op`, and their wrappers; their kernels are
        not compiled again.
      targets: levels to compile kernels for, which this machine must have: of CPUs, as
        "x86-64-v3", of GPUs, as "cuda:sm_90", and "cpu", its highest; by default that.
      tags: of all targets.
      test: whether all targets are testonly.
      signatures: a file of calls to compile kernels for: JSON, or what COMPOSITE_RECORD wrote.
      tuned: a tuning database, by which kernels are made: what `composite tune` wrote.
      kinds: for an op without stated calls, for how many kinds of calls there are kernels at most.
      visibility: of all targets.
    """
    if not name.replace("_", "a").isalnum() or name[0].isdigit():
        fail("gen_op_libraries(name = \"%s\"): the name is not an identifier" % name)
    if not src.endswith(".py"):
        fail("gen_op_libraries(name = \"%s\"): src is %s, which is no Python file" % (name, src))
    if src.rpartition("/")[2].rpartition(":")[2] == name + ".py":
        fail("'src' %s conflicts with op Python wrapper. Rename it to be different from 'name'." % src)
    common = {"tags": tags, "testonly": test, "visibility": visibility}
    op_library(
        name = name,
        src = src,
        deps = deps,
        targets = targets,
        signatures = signatures,
        tuned = tuned,
        kinds = -1 if kinds == None else kinds,
        **common
    )
    op_library_wrapper(name = "gen_" + name, library = name, **common)
    op_library_sources(name = name + "_py", library = name, src = src, **common)
    op_library_file(name = name + ".so", library = name, what = "shared_library", out = name + ".so", **common)
    op_library_file(name = name + "_mlir", library = name, what = "mlir", **common)
    op_library_file(name = "registered_" + name, library = name, what = "registration", **common)
    op_library_file(name = "_%s_shared" % name, library = name, what = "shared_library", **common)
    op_library_cc_deps(name = "_%s_cc_deps" % name, library = name, **common)
    # The linker's order: what stands later is initialized before.
    runtime = [Label("@composite_python//:composite_runtime"), "_%s_cc_deps" % name]
    _cc_library(name + "_cc", "_%s_shared" % name, runtime, common)

def gen_op_bindings(name, tags = [], test = False, visibility = None):
    """Python functions for ops that <name>_ops.cc registers in C++, and maybe implements.

    Defines
      <name>_ops      a py_library, gen_<name>_ops.py with the shared library;
      gen_<name>_ops  the same, of which gen_<name>_ops.py is built alone;
      <name>_ops.so   the shared library, for tf.load_op_library;
      <name>_ops_cc   the same for C++ targets to depend on.
    An op library whose ops call these has <name>_ops among its deps.

    Args:
      name: the source file's without _ops.cc.
      tags: of all targets.
      test: whether all targets are testonly.
      visibility: of all targets.
    """
    common = {"tags": tags, "testonly": test, "visibility": visibility}
    ops = name + "_ops"
    op_binding(name = ops + ".so", src = ops + ".cc", **common)
    _cc_library(ops + "_cc", ops + ".so", [Label("@composite_python//:tensorflow")], common)
    op_binding_wrapper(name = "gen_" + ops, cc = ops + "_cc", library = ops + ".so", **common)
    op_bindings(name = ops, library = ops + ".so", wrapper = "gen_" + ops, **common)

def _cc_library(name, shared_library, deps, common):
    """A C++ target that brings a shared library along, whether or not it is referred to."""
    cc_import(name = "_%s_import" % name, shared_library = shared_library, **common)
    cc_library(
        name = name,
        linkopts = ["-Wl,--no-as-needed"],
        deps = ["_%s_import" % name] + deps,
        **common
    )
