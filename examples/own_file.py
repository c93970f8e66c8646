"""Ask whether to train a CSV file sparse or dense, then train, save the model and predict the rows of a file with it.

python examples/own_file.py [FILE.csv LABEL_COLUMN]; without a file a small one is written.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import workbench as wb

folder = Path(tempfile.mkdtemp(prefix="own-file-"))
if len(sys.argv) > 2:
    path, label = sys.argv[1:3]
else:
    path, label = folder / "clicks.csv", "clicked"
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"ad": rng.integers(0, 500, 4_000), "site": rng.integers(0, 2_000, 4_000)})
    table["price"] = rng.uniform(1, 9, len(table)).round(2)
    table[label] = np.where(table["ad"] % 5 + rng.normal(size=len(table)) > 2, "yes", "no")
    table = table.assign(ad="ad-" + table["ad"].astype(str), site="site-" + table["site"].astype(str))
    table.to_csv(path, index=False)

data = wb.load(path, label=label)
print(wb.profile(data))

advice = wb.advise(data, budget=20, run=folder / "advice")  # seconds; 60 is usual and more certain
print(advice)

model = advice.fit(random_state=0)  # an estimator with predict and predict_proba
model.save(folder / "model")  # arrays and JSON, no pickle

predictions = wb.load_model(folder / "model").apply(path)  # any file with the same columns
print("first predictions:", *predictions.values[:5])
print("quality on these rows:", predictions.quality)
