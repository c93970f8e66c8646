"""Sparse arrays show shape, format, density, bytes and a picture of their pattern, whatever their size."""

import re
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from tests.support.processes import printed
from tests.support.small_sets import coo, csc, csr
from workbench import formats
from workbench.formats import FormatError, RowSparse, pictures


def cells(html):
    """The picture as an array of opacities, drawn from its paths."""
    across, down = map(int, re.search(r"viewBox='0 0 (\d+) (\d+)'", html).groups())
    shown = np.zeros((down, across))
    for opacity, path in re.findall(r"fill-opacity='([\d.]+)' d='([^']*)'", html):
        for at, row, width in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", path):
            assert not shown[int(row), int(at) : int(at) + int(width)].any()
            shown[int(row), int(at) : int(at) + int(width)] = float(opacity)
    return shown


@pytest.mark.parametrize("x", [csr(), coo(), csc((0, 1, 2, 2, 3), (2, 0, 0), (3, 1, 2), (3, 4))])
def test_figures_and_every_entry_of_a_small_array(x):
    html = formats.picture(x)
    for fact in ("3 × 4", x.format, "float32", "3 of 12", "0.25", f"{formats.nbytes(x):,} bytes, dense 48"):
        assert f">{fact}</td>" in html
    np.testing.assert_array_equal(cells(html) > 0, x.toarray() != 0)
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("shape", [(6,), (6, 2), (6, 2, 3)])
def test_row_sparse_shows_its_rows(shape):
    x = RowSparse(np.ones((2, *shape[1:]), np.float64), [1, 4], shape)
    html = x._repr_html_()
    assert ">2 of 6 rows</td>" in html
    assert ">0.333</td>" in html
    assert cells(html)[:, 0].astype(bool).tolist() == [False, True, False, False, True, False]


@pytest.mark.parametrize("name", ["csr", "csc", "coo", "row_sparse"])
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1), (5, 4)])
def test_arrays_without_entries_are_shown(name, shape):
    html = formats.picture(formats.zeros(shape, name))
    assert not cells(html).any()
    assert ">0</td>" in html  # the density


def test_darker_is_fuller():
    dense = np.zeros((96, 96), np.float32)
    dense[:2, :2] = 1
    dense[2, 2] = 1
    shown = cells(formats.picture(formats.to_format(dense, "csr")))
    assert shown[0, 0] == 1
    assert 0 < shown[1, 1] < 0.6
    assert np.count_nonzero(shown) == 2


def test_blocks_of_unequal_size_count_by_their_share():
    shown = cells(formats.picture(formats.to_format(np.ones((61, 50), np.float32), "coo")))
    assert shown.shape == (48, 48)
    assert (shown == 1).all()


def test_of_a_large_array_a_sample_is_shown_in_few_bytes(monkeypatch):
    monkeypatch.setattr(pictures, "ENTRIES", 1000)
    rng = np.random.default_rng(0)
    for name in ("csr", "csc", "coo"):
        x = formats.to_format(coo(*rng.integers(0, 10**6, (2, 10**5)), np.ones(10**5), (10**6, 10**6)), name)
        html = formats.picture(x)
        assert len(html) < 60_000
        assert 200 < np.count_nonzero(cells(html)) < 1001
    high = formats.zeros((10**9, 10**12), "row_sparse", np.float64)
    assert "dense 8,000,000,000,000,000,000,000<" in high._repr_html_()


def test_sides_follow_the_shape_as_far_as_they_can_be_seen():
    assert pictures._sides(10, 10) == (96, 96)
    assert pictures._sides(200, 100) == (48, 96)
    assert pictures._sides(1, 10**6) == (96, 24)


@pytest.mark.parametrize(
    ("x", "message"),
    [(np.eye(3), "A dense array came. Allowed: csr, csc, coo"), (csr(columns=(1, 9, 0)), "out of range")],
)
def test_what_cannot_be_pictured_is_refused(x, message):
    with pytest.raises(FormatError, match=message):
        formats.picture(x)


def test_a_notebook_shows_them_until_it_is_told_not_to():
    pytest.importorskip("IPython")
    script = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
import scipy.sparse as sp, numpy as np
from workbench import formats
def shown(x):
    return "<svg" in shell.display_formatter.format(x)[0].get("text/html", "")
kinds = [getattr(sp, f"{name}_{kind}")(np.eye(2)) for name in ("csr", "csc", "coo") for kind in ("array", "matrix")]
print([shown(x) for x in kinds])
formats.notebook()
formats.notebook()
print([shown(x) for x in kinds], shown(sp.csr_array(np.eye(2, dtype=complex))), shown(sp.lil_array((2, 2))))
formats.notebook(on=False)
formats.notebook(on=False)
print([shown(x) for x in kinds])
"""
    assert printed(script).splitlines() == [str([False] * 6), f"{[True] * 6} False False", str([False] * 6)]


def test_without_a_notebook_there_is_nothing_to_register_with():
    script = "from workbench import formats; formats.notebook()"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "RuntimeError: There is no notebook here. Call formats.notebook() in a notebook" in run.stderr


def test_matrix_classes_are_pictured_like_arrays():
    assert formats.picture(sp.csr_matrix(csr())) == formats.picture(csr())
