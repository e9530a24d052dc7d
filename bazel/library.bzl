"""The rules behind gen_op_libraries: one action builds a library, the others name parts of it.

Not for: the names that users type (build_defs.bzl).
"""

load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("@rules_python//python:defs.bzl", "PyInfo")
load(":bindings.bzl", "OpBindingInfo")
load(":environment.bzl", "EnvironmentInfo", "search_path")

OpLibraryInfo = provider(
    doc = "A library of ops that `composite build` wrote.",
    fields = {
        "files": "dict of the library's files by what they are, as in _FILES",
        "wrapper": "gen_<name>.py",
        "sources": "runfiles: what a source that builds on these ops may import, of all dependencies",
        "py_info": "PyInfo of these",
        "bindings": "list of OpBindingInfo: what must be loaded before",
        "manifests": "depset: manifest.json of this library and of those that it depends on",
    },
)

_FILES = {
    "shared_library": "lib{}.so",
    "kernels": "lib{}_kernels.so",
    "wrapper": "{}.py",
    "stubs": "{}.pyi",
    "mlir": "{}.mlir",
    "docs": "{}.md",
    "registration": "{}.c",
    "manifest": "manifest.json",
    "timings": "timings.json",
}

_WRAPPER = '''\
"""The ops of {label}. Generated; do not edit."""

{imports}from .{name}.{name} import *  # noqa: F403
from .{name}.{name} import __all__, library  # noqa: F401
'''

def _py_info(infos, sources = []):
    return PyInfo(
        transitive_sources = depset(sources, transitive = [info.transitive_sources for info in infos]),
        imports = depset(transitive = [info.imports for info in infos]),
        has_py3_only_sources = True,
    )

def _merged(runfiles, others):
    for other in others:
        runfiles = runfiles.merge(other)
    return runfiles

def _op_library_impl(ctx):
    name = ctx.label.name
    files = {
        what: ctx.actions.declare_file(name + "/" + pattern.format(name))
        for what, pattern in _FILES.items()
    }
    libraries = [dep[OpLibraryInfo] for dep in ctx.attr.deps if OpLibraryInfo in dep]
    bindings = {
        binding.module: binding
        for binding in [dep[OpBindingInfo] for dep in ctx.attr.deps if OpBindingInfo in dep] +
                       [binding for library in libraries for binding in library.bindings]
    }
    wrapper = ctx.actions.declare_file("gen_%s.py" % name)
    ctx.actions.write(wrapper, _WRAPPER.format(
        imports = "".join(["import %s  # noqa: F401\n\n" % module for module in bindings]),
        label = ctx.label,
        name = name,
    ))

    modules = [dep for dep in ctx.attr.deps if OpLibraryInfo not in dep]
    own = [ctx.file.src]
    sources = _merged(
        ctx.runfiles(files = own),
        [module[DefaultInfo].default_runfiles for module in modules] +
        [library.sources for library in libraries],
    )
    infos = [module[PyInfo] for module in modules] + [library.py_info for library in libraries]
    py_info = _py_info(infos, own)
    manifests = depset(transitive = [library.manifests for library in libraries])
    _build(ctx, files, sources, py_info, manifests)

    # What was measured differs from one build to the next: no other library is built with it.
    built = [wrapper] + [file for what, file in files.items() if what != "timings"]
    needed = [ctx.attr._environment[EnvironmentInfo].composite] + bindings.values()
    return [
        DefaultInfo(
            files = depset([wrapper] + files.values()),
            runfiles = _merged(
                ctx.runfiles(files = built + [files["timings"]]),
                [one.runfiles for one in needed],
            ),
        ),
        _py_info([one.py_info for one in needed], [wrapper, files["wrapper"]]),
        OpLibraryInfo(
            files = files,
            wrapper = wrapper,
            sources = sources.merge(ctx.runfiles(files = built)),
            py_info = py_info,
            bindings = bindings.values(),
            manifests = depset([files["manifest"]], transitive = [manifests]),
        ),
    ]

def _build(ctx, files, sources, py_info, manifests):
    environment = ctx.attr._environment[EnvironmentInfo]
    given = sources.merge(environment.composite.runfiles).files
    imports = depset(transitive = [py_info.imports, environment.composite.py_info.imports])

    arguments = ctx.actions.args()
    arguments.use_param_file("@%s", use_always = True)
    arguments.set_param_file_format("multiline")
    arguments.add("--source", ctx.workspace_name + "/" + ctx.file.src.short_path)
    arguments.add("--label", str(ctx.label))
    arguments.add("--workspace", ctx.workspace_name)
    arguments.add_all(imports, format_each = "--import=%s")
    arguments.add_all(given, map_each = _staged)
    arguments.add_all(files.values(), before_each = "--output")
    arguments.add_all(manifests, before_each = "--dep")
    arguments.add_all(["--name", ctx.label.name, "--registration"], format_each = "--flag=%s")
    arguments.add_all(ctx.attr.targets, format_each = "--flag=--target=%s")
    if ctx.attr.kinds >= 0:
        arguments.add("--flag=--kinds=%d" % ctx.attr.kinds)
    if ctx.file.signatures:
        arguments.add("--signatures", ctx.file.signatures)
    if ctx.file.tuned:
        arguments.add("--tuned", ctx.file.tuned)

    ctx.actions.run(
        executable = environment.interpreter,
        arguments = [ctx.file._driver.path, arguments],
        inputs = depset(
            [ctx.file._driver, environment.description] + ctx.files.signatures + ctx.files.tuned,
            transitive = [given, manifests],
        ),
        outputs = files.values(),
        env = {"CC": environment.cc, "PATH": search_path(environment.cc)},
        # The interpreter, and the machine that the kernels are measured on, are this one's.
        execution_requirements = {"no-remote-exec": "1"},
        mnemonic = "CompositeBuild",
        progress_message = "Building op library %s" % ctx.label,
    )

def _staged(file):
    return ["--file", file.short_path, file.path]

op_library = rule(
    implementation = _op_library_impl,
    attrs = {
        "src": attr.label(allow_single_file = [".py"], mandatory = True),
        "deps": attr.label_list(providers = [[PyInfo], [OpLibraryInfo]]),
        "targets": attr.string_list(),
        "signatures": attr.label(allow_single_file = True),
        "tuned": attr.label(allow_single_file = True),
        "kinds": attr.int(default = -1),
        "_driver": attr.label(
            default = Label("//bazel:build_library.py"),
            allow_single_file = True,
        ),
        "_environment": attr.label(
            default = Label("@composite_python//:environment"),
            providers = [EnvironmentInfo],
        ),
    },
    provides = [PyInfo, OpLibraryInfo],
)

def _op_library_file_impl(ctx):
    library = ctx.attr.library[OpLibraryInfo]
    file = library.files[ctx.attr.what]
    if not ctx.attr.out:
        return [DefaultInfo(files = depset([file]), runfiles = ctx.runfiles(files = [file]))]
    named = ctx.actions.declare_file(ctx.attr.out)
    ctx.actions.symlink(output = named, target_file = file)
    beside = [named, file, library.files["timings"]]
    return [DefaultInfo(files = depset([named]), runfiles = ctx.runfiles(files = beside))]

op_library_file = rule(
    implementation = _op_library_file_impl,
    attrs = {
        "library": attr.label(mandatory = True, providers = [OpLibraryInfo]),
        "what": attr.string(mandatory = True, values = _FILES.keys()),
        "out": attr.string(doc = "a name for it in the package's own folder"),
    },
)

def _op_library_cc_deps_impl(ctx):
    bindings = ctx.attr.library[OpLibraryInfo].bindings
    return [cc_common.merge_cc_infos(cc_infos = [binding.cc_info for binding in bindings])]

op_library_cc_deps = rule(
    implementation = _op_library_cc_deps_impl,
    attrs = {"library": attr.label(mandatory = True, providers = [OpLibraryInfo])},
    provides = [CcInfo],
)

def _op_library_wrapper_impl(ctx):
    library = ctx.attr.library
    return [
        DefaultInfo(
            files = depset([library[OpLibraryInfo].wrapper]),
            runfiles = library[DefaultInfo].default_runfiles,
        ),
        library[PyInfo],
    ]

op_library_wrapper = rule(
    implementation = _op_library_wrapper_impl,
    attrs = {"library": attr.label(mandatory = True, providers = [OpLibraryInfo])},
    provides = [PyInfo],
)

def _op_library_sources_impl(ctx):
    library = ctx.attr.library[OpLibraryInfo]
    composite = ctx.attr._environment[EnvironmentInfo].composite
    return [
        DefaultInfo(
            files = depset(ctx.files.src),
            runfiles = library.sources.merge(composite.runfiles),
        ),
        _py_info([library.py_info, composite.py_info]),
    ]

op_library_sources = rule(
    implementation = _op_library_sources_impl,
    attrs = {
        "library": attr.label(mandatory = True, providers = [OpLibraryInfo]),
        "src": attr.label(allow_single_file = [".py"], mandatory = True),
        "_environment": attr.label(
            default = Label("@composite_python//:environment"),
            providers = [EnvironmentInfo],
        ),
    },
    provides = [PyInfo],
)
