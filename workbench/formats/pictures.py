"""Display of sparse arrays: text with values, and HTML with properties and a picture of the sparsity pattern.

RowSparse displays itself in notebooks. csr, csc and coo are SciPy's classes: `picture(x)` returns their HTML, and
`notebook()` registers it with the running notebook.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from workbench.formats.contract import refuse, validate

ROWS_SHOWN = 6
CELLS = 48
"""Cells of the picture in each direction; each stands for a block of the array."""

SHADES = 6
ENTRIES = 2**20
"""Stored entries that a picture looks at; of more, every so many."""

LONGEST, SHORTEST = 96, 24
"""Sides of the picture in pixels."""


def text(x: Any) -> str:
    """Return shape, dtype and the first and last stored rows of a RowSparse as text."""
    head = f"RowSparse(shape={x.shape}, stored_rows={len(x.indices)}, dtype={x.dtype})"
    stored = len(x.indices)
    shown = list(range(stored))
    if stored > ROWS_SHOWN:
        shown = [*range(ROWS_SHOWN // 2), *range(stored - ROWS_SHOWN // 2, stored)]
    lines = [_row(x, at) for at in shown]
    if stored > ROWS_SHOWN:
        lines.insert(ROWS_SHOWN // 2, f"  ... {stored - ROWS_SHOWN} more")
    return "\n".join([head, *lines])


def _row(x: Any, at: int) -> str:
    """Return the text of the stored row at position `at`, such as "  row 4: [3. 4.]"; long rows are shortened."""
    start = f"  row {x.indices[at]}: "
    return start + np.array2string(np.asarray(x.values[at]), threshold=8, edgeitems=2, prefix=start, precision=4)


def picture(x: Any) -> str:
    """Draw the sparsity pattern of an array as HTML, with shape, format, density and bytes.

    The darker a configuration, the larger the share of its block that is stored. At most `ENTRIES` entries are sampled.

    Parameters
    ----------
    x : array_like
        csr, csc, coo or row_sparse array.

    Returns
    -------
    str
        An HTML fragment with an inline SVG.

    Raises
    ------
    FormatError
        If `x` is dense or invalid.

    Examples
    --------
    >>> import scipy.sparse
    >>> html = picture(scipy.sparse.csr_array(np.eye(4, dtype=np.float32)))
    >>> "4 of 16" in html, html.count("<path")
    (True, 1)
    """
    format, x = validate(x)
    if format.name == "dense":
        raise refuse("A dense array came", "csr, csc, coo and row_sparse", "Convert it: formats.to_format(x, 'csr')")
    size = int(np.prod(x.shape, dtype=object))
    nbytes = sum(part.nbytes for part in format.parts(x).values())
    facts = {
        "shape": " × ".join(f"{length:,}" for length in x.shape),
        "format": format.name,
        "dtype": str(x.dtype),
        "stored": f"{x.nnz:,} of {size:,}",
        "density": f"{x.nnz / size if size else 0:.3g}",
        "memory": f"{nbytes:,} bytes, dense {size * x.dtype.itemsize:,}",
    }
    if format.name == "row_sparse":
        facts["stored"] = f"{len(x.indices):,} of {x.shape[0]:,} rows"
    lines = "".join(f"<tr><th style='text-align:left'>{key}</th><td>{value}</td></tr>" for key, value in facts.items())
    return (
        f"<div style='display:flex;gap:1em;align-items:center'>{_svg(x, facts['stored'])}<table>{lines}</table></div>"
    )


def _places(x: Any) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Return (rows, columns, row count, column count) of the stored entries, sampled if they are many.

    row_sparse counts as one column.
    """
    if x.format == "row_sparse":
        return x.indices, np.zeros_like(x.indices), x.shape[0], 1
    seen = np.arange(0, x.nnz, x.nnz // ENTRIES + 1)
    if x.format == "coo":
        return x.row[seen], x.col[seen], *x.shape
    major, minor = np.searchsorted(x.indptr, seen, side="right") - 1, x.indices[seen]
    return (major, minor, *x.shape) if x.format == "csr" else (minor, major, *x.shape)


def _shares(x: Any) -> np.ndarray:
    """Return the share of stored entries in each block of the picture [down, across], scaled to a maximum of 1."""
    row, col, rows, columns = _places(x)
    down, across = min(CELLS, max(rows, 1)), min(CELLS, max(columns, 1))
    cell = (row.astype(np.int64) * down // max(rows, 1)) * across + col.astype(np.int64) * across // max(columns, 1)
    counts = np.bincount(cell, minlength=down * across).reshape(down, across)
    room = np.outer(_lengths(rows, down), _lengths(columns, across))  # entries in each block
    shares = counts / np.maximum(room, 1)
    return shares / max(shares.max(), 1e-300)


def _lengths(total: int, cells: int) -> np.ndarray:
    """Return how many of `total` rows (or columns) each of `cells` blocks covers, int [cells]."""
    return np.diff(-(-np.arange(cells + 1) * total // cells))


def _svg(x: Any, stored: str) -> str:
    """Return the picture of a sparse array as SVG text; `stored` is the text for its title."""
    shares = _shares(x)
    down, across = shares.shape
    width, height = _sides(x.shape[0], int(np.prod(x.shape[1:], dtype=np.int64)))
    shades = np.ceil(shares * SHADES).astype(int)
    paths = "".join(
        f"<path fill-opacity='{0.2 + 0.8 * shade / SHADES:.2f}' d='{_runs(shades == shade)}'/>"
        for shade in np.unique(shades[shades > 0])
    )
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' viewBox='0 0 {across} {down}'"
        " preserveAspectRatio='none' shape-rendering='crispEdges' role='img' fill='#1f5fa8'"
        f" style='border:1px solid #888;background:#fff' aria-label='{stored} stored'>"
        f"<title>{stored} stored</title>{paths}</svg>"
    )


def _runs(marked: np.ndarray) -> str:
    """Return the marked blocks [down, across] as an SVG path, each horizontal run as one rectangle."""
    edges = np.diff(marked.astype(np.int8), axis=1, prepend=0, append=0)
    row, start = np.nonzero(edges == 1)
    end = np.nonzero(edges == -1)[1]
    return "".join(f"M{s} {r}h{e - s}v1h{s - e}z" for r, s, e in zip(row, start, end, strict=True))


def _sides(rows: int, columns: int) -> tuple[int, int]:
    """Return (width, height) in pixels, in the aspect ratio of the array as far as the shorter side stays visible."""
    longest = max(rows, columns, 1)
    return max(SHORTEST, round(LONGEST * columns / longest)), max(SHORTEST, round(LONGEST * rows / longest))


def notebook(on: bool = True) -> None:
    """Make the running notebook display csr, csc and coo arrays as `picture` does.

    Parameters
    ----------
    on : bool, default True
        False restores SciPy's display.

    Raises
    ------
    RuntimeError
        If no notebook kernel is running.

    Notes
    -----
    Arrays that `picture` refuses are displayed as SciPy displays them.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        raise RuntimeError("There is no notebook here. Call formats.notebook() in a notebook, or formats.picture(x).")
    formatter = shell.display_formatter.formatters["text/html"]
    for name in ("csr", "csc", "coo"):
        for kind in ("array", "matrix"):
            shown = getattr(scipy.sparse, f"{name}_{kind}")
            if on:
                formatter.for_type(shown, _or_none(picture))
            else:
                formatter.pop(shown, None)


def _or_none(show: Callable[[Any], str]) -> Callable[[Any], str | None]:
    """Return `show` as a function that returns None instead of raising ValueError; the notebook then displays text."""

    def show_or_not(x: Any) -> str | None:
        """Return the HTML text show(x), None if it raises ValueError."""
        try:
            return show(x)
        except ValueError:
            return None

    return show_or_not
