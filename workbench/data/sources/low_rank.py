"""Synthetic ratings of users for items: biases and a product of few factors, seen more often where it is high.

A row is one rating: a 1 in the column of its user and a 1 in that of its item, items behind users; labels are the
ratings. Which items a user has rated follows from the same preferences and from popularity, so that there is something
to learn from what was rated at all (implicit feedback), too.
"""

import numpy as np

from workbench.data.contract import Source, register
from workbench.data.dataset.record import Dataset
from workbench.data.errors import DataError
from workbench.data.labels import Labels
from workbench.data.synthetic import LICENCE, ORIGIN, require_at_least
from workbench.formats.compressed import assemble

BLOCK = 1 << 24
"""Preferences that are drawn at once."""


def make(
    users: int = 1000,
    items: int = 500,
    rows: int = 30_000,
    rank: int = 4,
    noise: float = 0.5,
    strength: float = 1.5,
    popularity: float = 1.0,
    seed: int = 0,
) -> Dataset:
    """Return `rows` synthetic ratings of users for items, one-hot; no user rates an item twice.

    Facts: `fields` [users, items]. A rating is 3.5 + user bias + item bias (standard deviations 0.3 and 0.4) + the
    product of `rank` factors, of standard deviation 1 / 2, + `noise` normal. A user's items are drawn with chances
    proportional to exp(`strength` * 2 * product + `popularity` * normal of the item). Raises DataError for counts below
    1, and more ratings than pairs. O(users * items).
    """
    _check(users, items, rows, rank)
    generator = np.random.default_rng(seed)
    scale = rank**-0.25 * 0.5**0.5
    p, q = (generator.normal(0, scale, (count, rank)) for count in (users, items))
    of_user, of_item = generator.normal(0, 0.3, users), generator.normal(0, 0.4, items)
    common = popularity * generator.standard_normal(items)
    more = generator.permutation(users)[: rows % users]  # all users rate equally often, and these once more
    user = np.sort(np.concatenate([np.repeat(np.arange(users), rows // users), more]))
    item = _items(np.bincount(user, minlength=users), p, 2 * strength * q, common, generator)
    ratings = 3.5 + of_user[user] + of_item[item] + np.einsum("rk,rk->r", p[user], q[item])
    ratings += noise * generator.standard_normal(rows)
    columns = np.column_stack([user, users + item]).astype(np.int32).reshape(-1)
    x = assemble(
        "csr", 2 * np.arange(rows + 1, dtype=np.int32), columns, np.ones(2 * rows, np.float32), (rows, users + items)
    )
    order = generator.permutation(rows)
    labels = Labels("numbers", span=(float(ratings.min()), float(ratings.max())))
    facts = {"fields": [users, items], "rank": rank}
    return Dataset("low_rank", x[order], ratings[order].astype(np.float32), labels, ORIGIN, LICENCE, facts=facts)


def _check(users: int, items: int, rows: int, rank: int) -> None:
    """Raise DataError if a count is below 1, or there are more ratings than pairs of user and item."""
    require_at_least(1, users=users, items=items, rows=rows, rank=rank)
    if rows > users * items:
        raise DataError(f"rows is {rows:,}; {users:,} users rate {items:,} items once each, {users * items:,} at most.")


def _items(
    counts: np.ndarray, p: np.ndarray, q: np.ndarray, common: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """Return the items that each user rates, one user after the other, int64: counts[user] of them, no item twice.

    `p` [users, rank] and `q` [items, rank] are factors, `common` [items] the popularity. The largest of preference plus
    Gumbel noise are a sample without replacement (Vieira 2014; Efraimidis 2006).
    """
    picked, at_once = [], max(1, BLOCK // len(q))
    for first in range(0, len(p), at_once):
        keys = p[first : first + at_once] @ q.T + common
        keys += generator.gumbel(size=keys.shape)
        wanted = counts[first : first + at_once]
        picked += [chosen[:count] for chosen, count in zip(_largest(keys, int(wanted.max())), wanted, strict=True)]
    return np.concatenate(picked)


def _largest(keys: np.ndarray, count: int) -> np.ndarray:
    """Return the column indices of the `count` largest of each row of `keys`, descending, in O(row + count log count).

    The order of equal keys is not defined.
    """
    if count < keys.shape[1]:
        places = np.argpartition(-keys, count, axis=1)[:, :count]
        keys = np.take_along_axis(keys, places, axis=1)
        return np.take_along_axis(places, np.argsort(-keys, axis=1), axis=1)
    return np.argsort(-keys, axis=1)


register(Source("low_rank", make, ORIGIN, LICENCE, gives=("fields",)))
