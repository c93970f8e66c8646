"""The code of a training, the same on all machines: versions of what computes, and a hash of the source."""

import functools
import hashlib
from pathlib import Path

import kernels
import workbench
from workbench.kvstore import StoreError
from workbench.measure import stack

SUFFIXES = (".py", ".cu", ".cuh", ".h")


@functools.cache
def describe_code() -> str:
    """Describe the code in words. Some milliseconds, once: threads of Python 3.11 cannot parse files at the same time.

    See https://github.com/python/cpython/issues/106905.
    """
    digest = hashlib.sha256()
    for package in (kernels, workbench):
        root = Path(package.__path__[0])
        for path in sorted(path for path in root.rglob("*") if path.suffix in SUFFIXES):
            digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    versions = ", ".join(f"{name} {version}" for name, version in stack.versions().items())
    return f"{versions}, source {digest.hexdigest()[:12]}"


def require_same_code(wanted: str) -> None:
    """Refuse to train with another code than where the training was asked for, "" for any (`StoreError`)."""
    if wanted and wanted != describe_code():
        raise StoreError(
            f"The code here is {describe_code()}; where the training was started, {wanted}. Install the same."
        )
