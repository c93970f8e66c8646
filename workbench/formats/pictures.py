"""How a RowSparse shows itself: as text with its values, and as HTML with a picture of the stored rows."""

from typing import Protocol

import numpy as np

ROWS_SHOWN = 6
BANDS = 96
"""Stripes of the picture; each stands for rows / BANDS rows."""


class _RowSparse(Protocol):
    values: np.ndarray
    indices: np.ndarray
    shape: tuple[int, ...]
    dtype: np.dtype
    nbytes: int


def text(x: _RowSparse) -> str:
    """Shape, type and the first and last stored rows."""
    head = f"RowSparse(shape={x.shape}, stored_rows={len(x.indices)}, dtype={x.dtype})"
    stored = len(x.indices)
    shown = list(range(stored))
    if stored > ROWS_SHOWN:
        shown = [*range(ROWS_SHOWN // 2), *range(stored - ROWS_SHOWN // 2, stored)]
    lines = [_row(x, at) for at in shown]
    if stored > ROWS_SHOWN:
        lines.insert(ROWS_SHOWN // 2, f"  ... {stored - ROWS_SHOWN} more")
    return "\n".join([head, *lines])


def _row(x: _RowSparse, at: int) -> str:
    start = f"  row {x.indices[at]}: "
    return start + np.array2string(np.asarray(x.values[at]), threshold=8, edgeitems=2, prefix=start, precision=4)


def html(x: _RowSparse) -> str:
    """A table of the figures beside a picture in which darker stripes hold more stored rows."""
    rows = x.shape[0]
    share = len(x.indices) / rows if rows else 0.0
    facts = {
        "shape": " × ".join(map(str, x.shape)),
        "format": "row_sparse",
        "dtype": str(x.dtype),
        "stored rows": f"{len(x.indices):,} of {rows:,}",
        "density": f"{share:.3g}",
        "memory": f"{x.nbytes:,} bytes",
    }
    cells = "".join(
        f"<tr><th style='text-align:left'>{name}</th><td>{value}</td></tr>" for name, value in facts.items()
    )
    return f"<div style='display:flex;gap:1em;align-items:center'>{_svg(x)}<table>{cells}</table></div>"


def _svg(x: _RowSparse) -> str:
    rows = max(x.shape[0], 1)
    bands = min(BANDS, rows)
    counts = np.bincount(x.indices * bands // rows, minlength=bands)
    room = np.diff(-(-np.arange(bands + 1) * rows // bands))  # rows in each stripe
    height = 96 / bands
    stripes = "".join(
        f"<rect x='0' y='{band * height:.2f}' width='40' height='{height:.2f}' fill='#1f5fa8'"
        f" fill-opacity='{0.15 + 0.85 * counts[band] / room[band]:.2f}'/>"
        for band in np.flatnonzero(counts)
    )
    label = f"{len(x.indices)} of {x.shape[0]} rows are stored"
    return (
        "<svg xmlns='http://www.w3.org/2000/svg' width='42' height='98' viewBox='-1 -1 42 98' role='img'"
        f" aria-label='{label}'><title>{label}</title>"
        f"<rect x='-0.5' y='-0.5' width='41' height='97' fill='none' stroke='#888'/>{stripes}</svg>"
    )
