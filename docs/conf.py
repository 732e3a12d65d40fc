"""Sphinx configuration of the site, which ``make docs`` builds into ``out/site``."""

from __future__ import annotations

import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from nmd_lab import __version__

HERE = Path(__file__).parent
ROOT = HERE.parent

sys.path.insert(0, str(HERE))

import api  # noqa: E402  these lie beside this file
import shapes  # noqa: E402
import try_it  # noqa: E402

project = "nmd_lab"
author = "the nmd_lab developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "figures",
    "screenshots",
    "gallery/*.ipynb",
    "gallery/*.py",
    "**/sg_execution_times*",
]
suppress_warnings = ["config.cache"]  # functions of this file are in the configuration

# Baselines of the gallery have their own numbers of iterations.
warnings.filterwarnings("ignore", category=ConvergenceWarning)

# Pages are Markdown, and notebooks are shown as they were committed.
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_markdown_format = "gfm"  # tables of cells are tables of the site

# The reference is made from the docstrings.
autosummary_generate = True
autodoc_typehints = "none"  # they are in the docstrings
default_role = "py:obj"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples" / "gallery")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_",
    "within_subsection_order": "gallery_order.by_subject",
    "backreferences_dir": "gallery/backreferences",  # pages of the reference list their examples
    "doc_module": ("nmd_lab",),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "min_reported_time": 1e9,
}

html_theme = "pydata_sphinx_theme"
html_title = "nmd_lab"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
# Pages with wide tables and pictures have no list of pages at their side.
WIDE = ("install", "models", "explore", "comparison")
WIDE += ("tables", "ratings", "pictures", "selection", "performance", "paper")
html_sidebars = {name: [] for name in WIDE}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 5,
    "show_prev_next": True,
    # Tutorials and the gallery have room for code instead of a list of headings.
    "secondary_sidebar_items": {
        **{page.stem: ["page-toc"] for page in Path(__file__).parent.glob("*.md")},
        "reference/**": ["page-toc"],
    },
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copyright = "the nmd_lab developers, BSD 3-Clause"


def copy_sources(app: Any) -> None:
    """Copy what lies outside of this folder: the notebooks."""
    target = HERE / "tutorials"
    for folder in ("", "paper"):
        (target / folder).mkdir(parents=True, exist_ok=True)
        for notebook in sorted((ROOT / "notebooks" / folder).glob("*.ipynb")):
            copy = target / folder / notebook.name
            if not copy.exists() or copy.stat().st_mtime < notebook.stat().st_mtime:
                shutil.copy2(notebook, copy)


def rewrite_links(app: Any, docname: str, source: list[str]) -> None:
    """Let links from notebooks to pages lead to where these are on the site."""
    if docname.startswith("tutorials/"):
        source[0] = source[0].replace("../docs/", "../")


def escape_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep the bars of an absolute value, which reStructuredText takes for a substitution."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[number] = line.replace("|", r"\|")


def skip_member(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn adds to each estimator."""
    added = name.startswith("set_") and name.endswith("_request")
    return True if added or name in ("set_output", "get_metadata_routing") else None


def setup(app: Any) -> None:
    """Copy the notebooks before Sphinx looks for pages, and connect the functions above."""
    app.connect("source-read", rewrite_links)
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("autodoc-skip-member", skip_member)
    copy_sources(app)
    api.write(HERE / "api.md")
    shapes.draw(HERE / "figures")
    try_it.write(HERE / "_static")
