"""@composite_python for Bazels with modules.

Not for: Debian's Bazel, whose WORKSPACE calls local_python itself.
"""

load(":python.bzl", "local_python")

def _python_impl(context):
    # The module itself is built and tested with its own sources, others with what pip installed.
    own = [module for module in context.modules if module.is_root and module.name == "tf_composite"]
    local_python(
        name = "composite_python",
        package = "@tf_composite//composite" if own else "",
    )

python = module_extension(implementation = _python_impl)
