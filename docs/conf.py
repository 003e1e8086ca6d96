"""Sphinx's configuration of the documentation site: `scripts/docs`, or rosdoc2 (rosdoc2.yaml)."""
import importlib.util
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

# rosdoc2 copies this folder, puts the checkout on the path, and executes this file from another one.
_package = importlib.util.find_spec("rbd_ros")
_checkouts = [Path(__file__).resolve().parents[1], *([Path(_package.origin).parents[1]] if _package else [])]
_checkout = next(folder for folder in _checkouts if (folder / "docs" / "rbd_site").is_dir())
sys.path[:0] = [str(_checkout), str(_checkout / "docs")]

from rbd_site import typeset    # noqa: E402

_manifest = xml.parse(_checkout / "package.xml")
project = "rbd_ros"
author = "rbd_ros developers"
copyright = f"{author}, Apache-2.0"
release = version = _manifest.findtext("version")

# All that is not part of Sphinx is optional but for MyST.
extensions = ["myst_parser", *(name for name in ("sphinx_copybutton",) if importlib.util.find_spec(name))]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4    # links to headings as forges make them
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["rbd_site", "__*", "CHANGELOG.rst", "CONTRIBUTING.md"]    # the last ones are rosdoc2's copies
nitpicky = True
smartquotes = False
default_role = "literal"
highlight_language = "none"    # of blocks that say no language
add_module_names = False
toc_object_entries_show_parents = "hide"

html_math_renderer = "drawn" if typeset.AVAILABLE else "mathjax"
html_theme = "furo" if importlib.util.find_spec("furo") else "alabaster"
html_theme_options: dict = {}
html_title = f"rbd_ros {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_show_sphinx = False

rosdoc2_settings = {"override_theme": False, "allow_other_extensions": True, "enable_intersphinx": False,
                    "automatically_extend_intersphinx_mapping": False, "enable_autodoc": False,
                    "support_markdown": False}


def setup(app):
    import rbd_site

    return rbd_site.setup(app)
