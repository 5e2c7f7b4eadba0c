"""The site of the documentation: ``make docs`` builds it from the pages of the repository as they are.

The root of the repository is the source folder, so that a relative link leads to the same file on the repository's page
and in the site. Nothing is loaded from elsewhere, neither while it is built nor when it is read.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))

from qmedoid import __version__  # noqa: E402

project = "qmedoid"
author = "The qmedoid developers"
project_copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_gallery.gen_gallery", "parts"]
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/**/*.md",
    "docs/gallery/*.rst",
    "benchmarks/quality/README.md",
    "src/qmedoid/data/README.md",
]
exclude_patterns = [".*", "build", "dist", "tests", "typings"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
smartquotes_action = "D"  # dashes alone: quotes stay as they are written
strip_signature_backslash = True  # or fitted attributes would lose the _ at their end
nitpicky = True
default_role = "code"

myst_heading_anchors = 4
myst_enable_extensions = ["html_image"]
suppress_warnings = ["misc.highlighting_failure"]

# The examples: run when the site is built, unless -D plot_gallery=0 says to show them only.
sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": str(ROOT / "docs" / "gallery"),
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "show_signature": False,
    "abort_on_example_error": True,
}

html_theme = "furo"
html_title = f"qmedoid {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}

autodoc_default_options = {"members": True, "inherited-members": "BaseEstimator"}
autodoc_member_order = "groupwise"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
# Types of parameters are words for readers, such as "ndarray of shape (n,)", and no names to look up.
nitpick_ignore_regex = [("py:class", r"(?!qmedoid\.).*")]
