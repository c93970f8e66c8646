"""Train a recommender on what users took and print the best new items of a user, with their titles.

python examples/recommender.py [FILE.csv], a line for each user, item and, if there are such, value, timestamp and
title; without a file one is written.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import workbench as wb

folder = Path(tempfile.mkdtemp(prefix="recommender-"))
if len(sys.argv) > 1:
    path = sys.argv[1]
else:
    path, rng = folder / "ratings.csv", np.random.default_rng(0)
    user, item = rng.integers(0, 300, 20_000), rng.integers(0, 90, 20_000)
    table = pd.DataFrame({"user": user, "item": item})[user % 3 == item % 3]  # each user likes one of three kinds
    table["title"] = table["item"].map("item-{}".format)
    table.assign(user="user-" + table["user"].astype(str)).to_csv(path, index=False)

# What was taken counts, and all else is a weak no. feedback="explicit" is for ratings, whose height counts.
recommender = wb.train(path, model="als", factors=32, random_state=0)
recommender.save(folder / "model")

user = recommender.users_[0]
best = wb.load_model(folder / "model").recommend([user], n=5)
print(f"best new items for {user}:", *(best.items if best.titles is None else best.titles)[0])

# Someone new is recommended to by what they took, without training again.
new = pd.DataFrame({"user": "new", "item": recommender.items_[[0, 3]]})
print(recommender.recommend(new, n=3).to_frame(["new"]).to_string(index=False))

# Factors, or a dense matrix of items by items? Held out and timed here.
print(wb.advise(path, model="als", factors=32, random_state=0))
