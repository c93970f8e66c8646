"""Scripts of few lines with LIBLINEAR and SGDClassifier of scikit-learn, and with PyTorch's EmbeddingBag."""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from workbench.bench.end.contract import PASSES, Candidate, Commands, Paths, register

SCRIPT = Path(__file__).parents[1] / "script.py"
STRENGTHS = ({"C": 0.01}, {"C": 0.1}, {"C": 1.0})
"""Inverse strengths of the penalty that LIBLINEAR tries."""
DECAYS = ({"alpha": 1e-2}, {"alpha": 1e-3}, {"alpha": 1e-4}, {"alpha": 1e-5})
"""Strengths of the penalty that SGDClassifier tries; it ends by itself."""


def commands(library: str, paths: Paths, setting: Mapping[str, Any]) -> Commands:
    """Return the command that runs the script of a library."""
    (value,) = setting.values()
    files = map(str, (paths.train, paths.held_out, paths.predictions, paths.stages))
    return [("script", [sys.executable, str(SCRIPT), library, paths.format, *files, str(value)])]


register(Candidate("liblinear", "competitor", partial(commands, "liblinear"), STRENGTHS))
register(Candidate("SGDClassifier", "competitor", partial(commands, "sgd"), DECAYS))
register(
    Candidate(
        "EmbeddingBag",
        "competitor",
        partial(commands, "embedding_bag"),
        PASSES,
        package="torch",
        install="pip install 'sparse-workbench[pytorch]'",
    )
)
