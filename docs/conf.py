"""Configuration of the documentation: `make docs` builds it into build/docs."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # benchmarks are not installed
sys.path.insert(0, str(Path(__file__).parent))

import generate

import workbench

project = "Sparse Workbench"
author = "The Sparse Workbench developers"
copyright = "The Sparse Workbench developers, MIT licence"
release = version = workbench.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Notebooks are executed where the environment variable of the Makefile asks for it, and results are kept in a cache.
nb_execution_mode = generate.execution_mode()
nb_execution_cache_path = str(generate.CACHE)
nb_execution_excludepatterns = generate.not_executed()
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_show_tb = True

autosummary_generate = True
autosummary_context = {"own_members": generate.own_members()}
templates_path = ["_templates"]
autodoc_typehints = "none"
numpydoc_show_class_members = False
add_module_names = False

html_theme = "pydata_sphinx_theme"
html_title = "Sparse Workbench"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "use_edit_page_button": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_math_renderer = "mathml"
suppress_warnings = ["autosummary.import_cycle"]

generate.write(Path(__file__).parent)


def setup(app):
    """Register formulas as MathML, which browsers draw without a script: nothing is loaded from the network."""
    app.add_html_math_renderer("mathml", (generate.inline_formula, None), (generate.display_formula, None))
