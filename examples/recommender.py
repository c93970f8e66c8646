"""Train a recommender on what users took (bpr: it learns the order of items) and print the best new items of a user.

python examples/recommender.py [FILE.csv], users and items in the first two columns; without a file one is written.
"""

import subprocess
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
    rating = np.where(user % 3 == item % 3, 5, 1)  # each user likes one of three kinds of items
    table = pd.DataFrame({"user": user, "item": item, "rating": rating})[rating > 3].drop_duplicates()
    table = table.assign(user="user-" + table["user"].astype(str), item="item-" + table["item"].astype(str))
    table.to_csv(path, index=False)

# The command trains it, as wb.train has no estimator that ranks. Each line counts as liked (implicit), whatever its
# rating: leave out what users did not like.
options = ["--dataset", "ratings", "--reading", "implicit=true", "--model", "bpr", "--epochs", "20"]
command = [sys.executable, "-m", "workbench", "train", path, *options, "--save", folder / "model"]
subprocess.run(command, check=True)

taken = pd.read_csv(path, dtype=str)
users, items = taken.iloc[:, 0], taken.iloc[:, 1]
user = users[0]
new = items[~items.isin(items[users == user])].unique()
pd.DataFrame({"user": user, "item": new}).to_csv(folder / "candidates.csv", index=False)

scores = wb.load_model(folder / "model").apply(folder / "candidates.csv").values
print(f"best new items for {user}:", *pd.Series(scores, new).nlargest(5).index)
