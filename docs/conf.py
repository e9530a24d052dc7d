"""How Sphinx makes the site of docs/: `make docs`, into build/site.

Warnings are errors there: a link, an anchor or a name that leads nowhere, a page that no contents
lists, a docstring that is no reStructuredText.
"""

import os
from pathlib import Path
from typing import Any

import composite

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

project = "tf-composite"
version = release = composite.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]

html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

html_static_path = ["_static"]
html_css_files = ["site.css"]

myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"

default_role = "code"  # docstrings have code in single backticks
# Public names are where users import them from, whatever module defines them.
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_numpy_docstring = False
napoleon_use_ivar = True


def without_links_outside(app: Any, doctree: Any) -> None:
    """Leaves the text of a link to a folder of the repository, which the site does not have."""
    from sphinx.addnodes import pending_xref

    for link in list(doctree.findall(pending_xref)):
        target = link.get("reftarget", "")
        if target.startswith("../") and Path(app.srcdir, target).is_dir():
            link.replace_self(link.children)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("doctree-read", without_links_outside)
