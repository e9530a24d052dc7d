"""The repositories that Debian's Bazel 4.2.3 asks for, from what Debian installs.

Not for: newer Bazels, which have modules (MODULE.bazel).
"""

_RULES = "/usr/share/bazel/rules/"

_COVERAGE = """\
filegroup(
    name = "coverage_report_generator",
    visibility = ["//visibility:public"],
)
"""

def _stand_in_impl(rctx):
    for file, path in rctx.attr.files.items():
        rctx.symlink(file, path)
        rctx.file(path.rpartition("/")[0] + "/BUILD", executable = False)
    rctx.file("BUILD", rctx.attr.build, executable = False)

_stand_in = repository_rule(
    implementation = _stand_in_impl,
    attrs = {
        "build": attr.string(doc = "BUILD of the repository's root"),
        "files": attr.label_keyed_string_dict(doc = "files, and what they are called there"),
    },
    doc = "A repository under the name of one that is on the network.",
)

def debian_rules():
    """rules_java and rules_proto from Debian; stand-ins for the others.

    rules_cc and rules_python hand on the rules that Bazel 4 has built in. A repository that the
    workspace has defined before is left as it is.
    """
    for name in ["rules_java", "rules_proto"]:
        if not native.existing_rule(name):
            native.local_repository(name = name, path = _RULES + name.rpartition("_")[2])
    if not native.existing_rule("rules_cc"):
        _stand_in(name = "rules_cc", files = {
            "@tf_composite//bazel/stand_ins:cc_builtin.bzl": "cc/common/builtin.bzl",
            "@tf_composite//bazel/stand_ins:cc_common.bzl": "cc/common/cc_common.bzl",
            "@tf_composite//bazel/stand_ins:cc_info.bzl": "cc/common/cc_info.bzl",
            "@tf_composite//bazel/stand_ins:rules_cc.bzl": "cc/defs.bzl",
        })
    if not native.existing_rule("rules_python"):
        _stand_in(name = "rules_python", files = {
            "@tf_composite//bazel/stand_ins:rules_python.bzl": "python/defs.bzl",
            "@tf_composite//bazel/stand_ins:py_builtin.bzl": "python/builtin.bzl",
        })
    if not native.existing_rule("remote_coverage_tools"):
        _stand_in(name = "remote_coverage_tools", build = _COVERAGE)
