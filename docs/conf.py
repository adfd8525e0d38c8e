"""The settings of the documentation site, which `make docs` builds."""

import logging
import sys
from pathlib import Path

DOCS = Path(__file__).parent
GALLERY = DOCS.parent / "examples" / "gallery"
sys.path.insert(0, str(DOCS / "_ext"))

import headwater  # noqa: E402

logging.getLogger("headwater").setLevel(logging.ERROR)  # that kernels are compiled is not part of an example's output

project = "headwater"
author = "The headwater developers"
project_copyright = author  # no year, so that the same sources give the same pages
version = release = headwater.__version__

extensions = [
    "myst_parser",  # pages are Markdown
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",  # cards and tabs
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",  # runs examples/gallery
    "members",  # _ext/members.py: what scikit-learn adds is left out
    "mathml",  # _ext/mathml.py: formulae without a script from the network
]
exclude_patterns = ["_build", "**/README.md"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}  # autosummary writes .rst
nitpicky = True  # a reference that leads nowhere is a warning, and warnings are errors
nitpick_ignore_regex = [(r"py:.*", r"(sklearn|numpy|hmmlearn|river|gensim|pandas)\..*")]  # there is no network to ask for them

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # the gallery's settings hold functions, which Sphinx does not store

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say what a parameter may be
autodoc_member_order = "groupwise"
toc_object_entries_show_parents = "hide"  # `aic()`, not `GaussianMixture.aic()`: the column is narrow
numpydoc_show_class_members = False  # the template lists them
numpydoc_xref_param_type = False
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

sphinx_gallery_conf = {
    "examples_dirs": str(GALLERY),
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "plot_gallery": "True",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1e9,  # seconds; how long an example took says something about the machine alone
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "doc_module": ("headwater",),
    "backreferences_dir": None,
    "show_signature": False,
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
}

templates_path = ["_templates"]
html_theme = "pydata_sphinx_theme"
html_title = "headwater"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {"index": [], "get-started": [], "architecture": [], "changelog": []}
