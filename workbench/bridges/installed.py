"""Installed frameworks, found by their metadata; none is imported, which would take seconds and start threads.

What a version takes is a table of what was seen of it; of others the nearest older one is reported, and that it is
that.

>>> known_of("torch", "2.14.1")[0][:40]
'csr and csc over memory of NumPy, int32 '
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

MINIMUM_SKLEARN = (1, 6)
"""From here on estimators say by tags what they take."""


@dataclass(frozen=True)
class Facts:
    """A framework by the name of its distribution, and what its versions take, oldest first."""

    distribution: str
    title: str
    takes: Mapping[str, str]


_TORCH = (
    "csr and csc over memory of NumPy, int32 or int64 indices of one width; coo as int64; X @ W on CPU, the gradient "
    "of W dense; follows wrong indices unless torch.sparse.check_sparse_tensor_invariants is on; "
)
KNOWN = (
    Facts(
        "torch",
        "PyTorch",
        {
            "2.13": _TORCH + "clip_grad_norm_ refuses sparse gradients",
            "2.14": _TORCH + "clip_grad_norm_ takes sparse gradients",
        },
    ),
    Facts(
        "tensorflow",
        "TensorFlow",
        {"2.21": "SparseTensor with int64 indices, rows in order; sparse_dense_matmul, the gradient of W dense"},
    ),
    Facts(
        "keras",
        "Keras",
        {
            "3.15": "Input(sparse=True) on the backends tensorflow and jax: csr, coo, lil, dok, bsr in fit and "
            "predict, no csc; Dense has a row-sparse gradient on tensorflow; no optimizer is lazy; widths are checked "
            "while tracing only"
        },
    ),
    Facts(
        "scikit-learn",
        "scikit-learn",
        {"1.9": "csr, csc, coo; int64 indices are refused by SGDClassifier, liblinear, Lasso, SVC and trees"},
    ),
    Facts("implicit", "implicit", {"0.7": "csr_matrix, not csr_array; duplicates and negative values without a word"}),
    Facts("vowpalwabbit", "Vowpal Wabbit", {"9.11": "lines of text; labels -1 and 1; columns modulo 2 ** bits"}),
)


@dataclass(frozen=True)
class Installed:
    """A framework that is there: its version, what that takes, and what to fix, "" if nothing."""

    title: str
    version: str
    takes: str
    advice: str = ""


def frameworks() -> list[Installed]:
    """Frameworks that are installed, in the order of `KNOWN`; milliseconds, as nothing is imported."""
    found = []
    for facts in KNOWN:
        if (version := _version(facts.distribution)) is not None:
            takes, seen = known_of(facts.distribution, version)
            takes += "" if version.startswith(f"{seen}.") else f" (seen of {seen})"
            found.append(Installed(facts.title, version, takes, _advice(facts.distribution, version)))
    return found


def known_of(distribution: str, version: str) -> tuple[str, str]:
    """Return (What that version takes, the version of which that was seen.

    The newest that is not newer, else the oldest).
    """
    takes = next(facts.takes for facts in KNOWN if facts.distribution == distribution)
    older = [seen for seen in takes if _numbers(seen) <= _numbers(version)]
    seen = older[-1] if older else next(iter(takes))
    return takes[seen], seen


def _advice(distribution: str, version: str) -> str:
    """Return what to change about an installed version of a library, or ""."""
    if distribution == "keras" and (backend := keras_backend()) not in ("tensorflow", "jax"):
        return f"Its backend is {backend}, where sparse=True is not supported: set KERAS_BACKEND=tensorflow."
    if distribution == "scikit-learn" and _numbers(version) < MINIMUM_SKLEARN:
        return "The estimators of workbench.bridges.sklearn need 1.6: pip install -U scikit-learn."
    if distribution == "tensorflow" and _version("binsparse") and _numbers(_version("h5py") or "0") < (3, 16):
        return "binsparse needs h5py 3.16, and this TensorFlow an older one: keep them in two environments."
    return ""


def keras_backend() -> str:
    """Return the backend that Keras would take: `KERAS_BACKEND`, else that of its file of settings, else tensorflow."""
    if chosen := os.environ.get("KERAS_BACKEND"):
        return chosen
    file = Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras") / "keras.json"
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "tensorflow"
    return str(known.get("backend", "tensorflow")) if isinstance(known, dict) else "tensorflow"


def _version(distribution: str) -> str | None:
    """Return the version installed; tensorflow may be there by the name of its build for CPU."""
    for name in (distribution, f"{distribution}_cpu", f"{distribution}-cpu"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _numbers(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    parts = version.split(".")[:2]
    return tuple(int("".join(sign for sign in part if sign.isdigit()) or 0) for part in parts)
