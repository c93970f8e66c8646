"""Lists of the n largest scores of each row, kept up over blocks of columns: best[r], places[r] take in scores[r].

Arguments  scores float32|float64 [R, M]; first int - the column that scores[:, 0] stands for; best same type [R, n],
           places int64 [R, n] - scores descending and their columns
Writes     best, places; where scores are equal the smaller column comes first if blocks come in rising order
Assumes    best starts at -inf; NaN is never taken in
Cost       R*M comparisons and about R*n*log(M/n) insertions of n; reads R*M*value bytes
Parallel   over rows; same bits always
Limits     R*M < 2**63
Source     Insertion into a sorted list, behind a comparison of 32 scores with its last one
"""

import numpy as np
from numba import prange

from kernels import devices
from kernels.contract import Case, Cost, Sizes, register_kernel
from kernels.gpu.source import FLOATS, blocks, c_name, source
from kernels.threads import call_parallel, compiled, compiled_parallel, equal_count, parts

BLOCK = 32
"""Scores that are compared with the last of the list before any is looked at."""


def reference(scores, first, best, places):
    """Take the scores [R, M] of columns `first` and on into the lists best [R, n], places [R, n], in plain loops."""
    for r in range(scores.shape[0]):
        for m in range(scores.shape[1]):
            k = best.shape[1]
            while k > 0 and best[r, k - 1] < scores[r, m]:
                k -= 1
            if k < best.shape[1]:
                best[r, k + 1 :], places[r, k + 1 :] = best[r, k:-1].copy(), places[r, k:-1].copy()
                best[r, k], places[r, k] = scores[r, m], first + m


@compiled
def _insert(best, places, score, place):
    """Take one score, which is larger than the last of the list `best` [n], into it, and its place into `places`."""
    k = best.size - 1
    while k > 0 and best[k - 1] < score:
        best[k], places[k] = best[k - 1], places[k - 1]
        k -= 1
    best[k], places[k] = score, place


@compiled_parallel
def _rows(scores, first, best, places, bounds):
    """Take scores into the lists of all rows, on several threads; part p does rows bounds[p] to bounds[p + 1] - 1."""
    for part in prange(bounds.size - 1):
        for r in range(bounds[part], bounds[part + 1]):
            row, own, own_places = scores[r], best[r], places[r]
            for start in range(0, row.size, BLOCK):
                block, above = row[start : start + BLOCK], 0
                for k in range(block.size):
                    above += block[k] > own[own.size - 1]
                if above:
                    for k in range(block.size):
                        if block[k] > own[own.size - 1]:
                            _insert(own, own_places, block[k], first + start + k)


def cpu(scores, first, best, places):
    """Take the scores [R, M] of columns `first` and on into the lists best [R, n], places [R, n], on the CPU."""
    if best.size:
        call_parallel(_rows, scores.size, scores, int(first), best, places, equal_count(scores.shape[0], parts()))


_KEPT = 1, 4, 0
"""Places of the list that a lane of a CUDA device keeps in registers; 0 is for lists of any length."""

_CUDA = source(__file__, [f"top_scores<{value}, {kept}>" for value in FLOATS for kept in _KEPT])


def gpu(scores, first, best, places):
    """Take the scores [R, M] of columns `first` and on into the lists best [R, n], places [R, n], on a CUDA device."""
    if not best.size:
        return
    (rows, width), size = scores.shape, best.shape[1]
    kept = next((each for each in _KEPT if 32 * each >= size), 0)
    name = f"top_scores<{c_name(best.dtype)}, {kept}>"
    operands = scores, int(first), best, places, rows, width, size
    devices.device_of(best).launch(_CUDA, name, blocks(32 * rows), *operands)


def cost(s: Sizes) -> Cost:
    """Return flops and bytes of a call for rows of D scores and lists of N: the scores move once."""
    return Cost(s.R * s.D, s.R * s.D * s.value + 2 * s.R * s.N * (s.value + 8))


def arguments(case: Case) -> tuple:
    """Build operands from `case`: scores of R rows and D columns, and lists that hold some scores already."""
    best = -np.sort(-case.dense(case.R, case.N, salt=1), axis=1)
    return case.dense(case.R, case.D), 7, best, np.zeros((case.R, case.N), np.int64)


register_kernel(__name__, "top_scores", "scores:f[R,M] first:s best:f[R,n] places:l[R,n]", writes=("best", "places"))
