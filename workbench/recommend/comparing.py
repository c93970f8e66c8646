"""Factors or EASE for these items: seconds, memory and recall of both on the user's own data, beside most popular."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import psutil

from kernels.registry import format_size
from workbench.data.errors import DataError
from workbench.recommend import ease
from workbench.recommend.interactions import Interactions, require_users
from workbench.recommend.recommender import LENGTH, Recommender, recall_of_factors, split_entries

FEWEST = 1000
"""Items from which on the time of EASE grows with their cube, so that its time at other numbers can be estimated."""


@final
@dataclass(frozen=True, repr=False)
class RecommenderAdvice:
    """What als, ease and most popular cost and recall on the same entries; `best` is the name to train with.

    `records` have model, seconds, bytes (of what is learned), recall at 20, and why one was left out. `items_most` is
    the number of items up to which EASE fits into the memory that is free; `items_equal` the number from which it takes
    longer than als, estimated (None for few items, or if EASE was left out). `is_personal` is whether the best recalls
    more than most popular by over two standard errors of the share of held-out entries that are recalled.
    """

    records: Sequence[Mapping[str, Any]]
    best: str
    items: int
    items_most: int
    items_equal: int | None
    is_personal: bool

    @property
    def frame(self) -> Any:
        """The records as a pandas frame, a row for each model."""
        import pandas

        return pandas.DataFrame(list(self.records)).set_index("model")

    @property
    def sentences(self) -> str:
        """What each model costs and recalls, a line each, and up to how many items EASE fits and pays."""
        parts = []
        for record in self.records:
            if record["reason"]:
                parts.append(f"{record['model']}: left out. {record['reason']}")
                continue
            parts.append(
                f"{record['model']}: recall at {LENGTH} {record['recall']:.3f}, {record['seconds']:.3g} s, "
                f"{format_size(record['bytes'])}"
            )
        equal = "" if self.items_equal is None else f"; from about {self.items_equal:,} on it takes longer than als"
        if not self.is_personal:
            parts.append(
                "No model recalls clearly more than a list of the most popular items for everybody does: "
                "what a user took tells little here about what else they take."
            )
        parts.append(
            f"EASE, dense, fits into the free memory up to {self.items_most:,} items (here {self.items:,}){equal}."
        )
        return "\n".join(parts)

    def __repr__(self) -> str:
        """Return the answer in sentences, and what to type."""
        return f'{self.sentences}\nTrain with wb.train(ratings, model="{self.best}").'


def compare(source: Any, **parameters: Any) -> RecommenderAdvice:
    """Train als and ease on nine tenths of every user's entries and compare their recall at 20 of the last tenth.

    `parameters` are those of `Recommender` for als; ease takes its usual ones. EASE is left out, with the reason, where
    its matrix does not fit. Raises DataError for data that cannot be used.
    """
    seed = parameters.get("random_state")
    als = Recommender("als", **parameters)
    if als.feedback == "explicit":
        raise DataError('Recall is of what was taken; expected feedback="implicit".')
    found: Interactions = als.read(source)
    require_users(found)
    train, held = split_entries(found, "user", seed)
    items = train.shape[1]
    records, seconds = [], {}
    for made in (als, Recommender("ease", random_state=seed)):
        record: dict[str, Any] = {"model": made.model, "seconds": None, "bytes": None, "recall": None, "reason": ""}
        start = time.perf_counter()
        try:
            made.fit(train)
        except DataError as error:
            record["reason"] = str(error)
        else:
            seconds[made.model] = record["seconds"] = time.perf_counter() - start
            record["bytes"] = made.nbytes
            record["recall"] = made.recall(held)
        records.append(record)
    counts = np.bincount(train.indices, minlength=items).astype(np.float32)[None]
    popular = recall_of_factors(np.ones((train.shape[0], 1), np.float32), counts.T, train, held)
    records.append({"model": "most popular", "seconds": 0.0, "bytes": counts.nbytes, "recall": popular, "reason": ""})
    best = max((record for record in records[:2] if not record["reason"]), key=lambda record: record["recall"])
    margin = 2 * (popular * (1 - popular) / max(held.nnz, 1)) ** 0.5
    equal = (
        None if "ease" not in seconds or items < FEWEST else int(items * (seconds["als"] / seconds["ease"]) ** (1 / 3))
    )
    most = int((psutil.virtual_memory().available / ease.bytes_of(1)) ** 0.5)
    return RecommenderAdvice(tuple(records), best["model"], items, most, equal, best["recall"] > popular + margin)
