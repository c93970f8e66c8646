"""Statistics of samples: a quantile and the interval between ranks that holds it; a share and its interval.

Distributions are those of `scipy.special`: `scipy.stats` takes a quarter of the time in which a sweep or panel starts.
"""

from collections.abc import Sequence

import numpy as np
from scipy import special


def quantile_interval(
    samples: Sequence[float], quantile: float, confidence: float = 0.95
) -> tuple[float, float, float]:
    """(quantile, low, high): the interval between two ranks of the samples that holds the true quantile.

    It assumes no distribution, but that the samples are independent: how many of n lie below the quantile q is
    binomial(n, q), and the ranks are the innermost with at least `confidence`. Where no ranks reach that, as below six
    samples for a median at 95 %, the smallest and the largest are returned. Same unit as the samples. O(n log n).
    ValueError without samples or where one is not finite.
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    if ordered.size == 0 or not np.isfinite(ordered).all():
        bad = np.count_nonzero(~np.isfinite(ordered))
        raise ValueError(f"A quantile needs finite samples; {ordered.size} came, of which {bad} are not finite.")
    at_most = special.bdtr(np.arange(ordered.size + 1), ordered.size, quantile)
    ranks = np.searchsorted(at_most, ((1 - confidence) / 2, (1 + confidence) / 2))
    low, high = max(ranks[0], 1), min(ranks[1] + 1, ordered.size)
    return float(np.quantile(ordered, quantile)), float(ordered[low - 1]), float(ordered[high - 1])


def median_interval(samples: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """(median, low, high) of samples that are independent, as `quantile_interval` gives them."""
    return quantile_interval(samples, 0.5, confidence)


def share_interval(hits: int, count: int, confidence: float = 0.95) -> tuple[float, float, float]:
    """(share, low, high) of `hits` of `count`: the score interval (Wilson 1927, JASA 22, 209), 0 to 1.

    ValueError unless 0 <= hits <= count and 0 < count.

    >>> [round(part, 3) for part in share_interval(0, 100)], [round(part, 3) for part in share_interval(5, 100)]
    ([0.0, 0.0, 0.037], [0.05, 0.022, 0.112])
    """
    if not 0 <= hits <= count or not count:
        raise ValueError(f"A share needs 0 <= hits <= count and a count above 0; {hits} of {count} came.")
    z = -float(special.ndtri((1 - confidence) / 2))
    share, spread = hits / count, z**2 / count
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * (share * (1 - share) / count + spread / (4 * count)) ** 0.5
    return share, max(middle - half, 0.0), min(middle + half, 1.0)
