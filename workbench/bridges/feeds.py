"""The feed that a bridge takes batches from: a given one, or one made of a data set, a file or a folder."""

import os

from workbench import data
from workbench.data import Dataset, Feed

Source = Feed | Dataset | str | os.PathLike
"""What batches come from."""


def feed_of(source: Source, taker: str, *, rows: int, shuffle: bool, seed: int, last: str) -> Feed:
    """Return a `Feed` unchanged; for a data set, a file or a folder a feed with batches of `rows` rows.

    A path is read by the data set that `data.guess` names. A folder of shards, `X.sparse`, is read as it is trained on
    and may be larger than memory, as may the rows of a data set that are stored. `DataError` for anything else; `taker`
    names who asks in its message.
    """
    if isinstance(source, str | os.PathLike):
        reader, options, _ = data.guess(source)
        source = data.load(reader, path=source, **options)
    if isinstance(source, Dataset):
        return data.batches_of(source.x, source.y, rows, shuffle=shuffle, seed=seed, last=last)
    if isinstance(source, Feed):
        return source
    raise data.DataError(
        f"A {type(source).__name__} came; {taker} takes a data.Feed, such as data.Batches(x, y), a data.Dataset, or "
        "the path of a file or of a folder X.sparse."
    )
