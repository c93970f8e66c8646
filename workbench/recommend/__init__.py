"""Recommenders of items from what users took: factors by alternating least squares, and EASE, a dense linear model."""

from pathlib import Path

from workbench.json_text import parsed

KIND, ABOUT = "sparse-workbench recommender", "model.json"
"""What the file of a saved recommender says that it is, and its name in the folder."""


def is_recommender(folder: Path) -> bool:
    """Return whether a folder holds a saved recommender, valid or not, rather than another model or none."""
    try:
        about = parsed((folder.expanduser() / ABOUT).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(about, dict) and about.get("kind") == KIND
