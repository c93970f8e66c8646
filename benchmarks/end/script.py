"""What a user writes with a library: read a file, train, predict the rows of another one.

Run as a program, with no other module of the project but the list of linear competitors: library, format, file to train
on, file held out, file of predictions, file of seconds by stage, and a value: the passes of EmbeddingBag, the strength
of the penalty of SGDClassifier, for all others its inverse.
"""

import importlib
import itertools
import json
import os
import sys
import time
from pathlib import Path

NUMBERS = ("I", "price")
"""What the names of columns of clicks begin with that are numbers, not categories."""
BATCH_ROWS = 256
ITERATIONS = 100
"""Iterations of a solver at most, as scikit-learn has them by default; liblinear's tolerance is 1 / ITERATIONS."""


def read_svmlight(train, held_out):
    """Return (X csr, y, held-out X csr) of two svmlight files, with the same columns and 32-bit indices.

    `train` and `held_out` are file paths; X is float64 [rows, columns], y float64 [rows].
    """
    import numpy as np
    from sklearn.datasets import load_svmlight_file

    x, y = load_svmlight_file(train)
    x_held_out, _ = load_svmlight_file(held_out, n_features=x.shape[1])
    for matrix in (x, x_held_out):  # scikit-learn reads 64-bit indices, which its linear models refuse
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return x, y, x_held_out


def read_clicks(train, held_out):
    """Return (X csr, y, held-out X csr) of two CSV files: first column label, then numbers and categories.

    `train` and `held_out` are file paths; categories are one-hot encoded by the training file, unknown ones are left
    out.
    """
    import numpy as np
    import pandas as pd
    from scipy import sparse
    from sklearn.preprocessing import OneHotEncoder

    first, second = pd.read_csv(train), pd.read_csv(held_out)
    numbers = [name for name in first.columns[1:] if name.startswith(NUMBERS)]
    categories = [name for name in first.columns[1:] if not name.startswith(NUMBERS)]
    encoder = OneHotEncoder(handle_unknown="ignore", dtype=np.float32)
    encoder.fit(first[categories].astype(str))

    def matrix(frame):
        """Return one-hot categories and log(1 + number) / 8 of a frame as one CSR matrix; missing numbers are 0."""
        logarithms = np.log1p(frame[numbers].fillna(0).to_numpy(np.float32)) / 8
        return sparse.hstack([encoder.transform(frame[categories].astype(str)), logarithms], format="csr")

    return matrix(first), first.iloc[:, 0].to_numpy(), matrix(second)


def read_clicks_polars(train, held_out):
    """Return (X csr, y, held-out X csr) of two CSV files as `read_clicks` does, by polars.

    `train` and `held_out` are file paths. An unknown category, or none, is an entry of 0.
    """
    import numpy as np
    import polars as pl
    from scipy import sparse

    first, second = pl.read_csv(train), pl.read_csv(held_out)
    numbers = [name for name in first.columns[1:] if name.startswith(NUMBERS)]
    categories = [name for name in first.columns[1:] if not name.startswith(NUMBERS)]
    kinds = {name: pl.Enum(first[name].cast(pl.String).drop_nulls().unique()) for name in categories}
    starts = np.cumsum([len(numbers), *(len(kind.categories) for kind in kinds.values())])

    def matrix(frame):
        """Return log(1 + number) / 8 and one-hot categories of a frame as one CSR matrix; missing numbers are 0."""
        logarithms = np.log1p(frame[numbers].fill_null(0).to_numpy().astype(np.float32)) / 8
        codes = frame.select(
            pl.col(name).cast(pl.String).cast(kind, strict=False).to_physical().cast(pl.Int32).fill_null(-1)
            for name, kind in kinds.items()
        ).to_numpy()
        columns = np.hstack([np.tile(np.arange(len(numbers)), (len(frame), 1)), np.maximum(codes, 0) + starts[:-1]])
        values = np.hstack([logarithms, codes >= 0]).astype(np.float32)
        rows = np.arange(len(frame) + 1, dtype=np.int32) * columns.shape[1]
        shape = len(frame), int(starts[-1])
        return sparse.csr_matrix((values.ravel(), columns.astype(np.int32).ravel(), rows), shape=shape)

    return matrix(first), first[:, 0].to_numpy(), matrix(second)


def train_listed(library, x, y, value):
    """Train a linear model by a library of the list; return a function from X to probabilities of 1 [rows].

    `value` is C, of SGDClassifier alpha. "liblinear" is the one that scikit-learn has. X is csr [rows, columns], y
    [rows] has labels 0 and 1.
    """
    if library == "liblinear" or library.endswith("SGDClassifier"):
        from sklearn.linear_model import LogisticRegression, SGDClassifier

        model = (
            LogisticRegression(solver="liblinear", C=value)
            if library == "liblinear"
            else SGDClassifier(loss="log_loss", alpha=value, random_state=0)
        )
        model.fit(x, y)
        return lambda held_out: model.predict_proba(held_out)[:, 1]
    import numpy as np

    linear = import_list()
    trained = linear.solve(library, linear.Problem(x, y, threads=os.cpu_count()), value, ITERATIONS)
    return lambda held_out: 1 / (1 + np.exp(-trained.scores(held_out)))


def import_list():
    """Return the module that has the list of linear competitors, two folders above this file."""
    folder = str(Path(__file__).resolve().parents[2])
    sys.path += [] if folder in sys.path else [folder]
    from benchmarks import linear

    return linear


def train_embedding_bag(x, y, passes):
    """Train a linear model by AdaGrad in PyTorch for `passes` epochs; return a function from X csr to probabilities.

    y [rows] has labels 0 and 1; batches are consecutive rows.
    """
    import torch

    bag = torch.nn.EmbeddingBag(x.shape[1], 1, mode="sum", sparse=True)
    torch.nn.init.zeros_(bag.weight)
    bias = torch.nn.Parameter(torch.zeros(1))
    rules = [torch.optim.Adagrad(part, lr=0.1) for part in (list(bag.parameters()), [bias])]

    def scores(rows):
        """Return the scores of CSR rows as a tensor [rows]."""
        entries, starts = torch.from_numpy(rows.indices).long(), torch.from_numpy(rows.indptr[:-1]).long()
        return bag(entries, starts, per_sample_weights=torch.from_numpy(rows.data).float())[:, 0] + bias

    targets = torch.from_numpy(y).float()
    for _ in range(int(passes)):
        for first in range(0, len(y), BATCH_ROWS):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                scores(x[first : first + BATCH_ROWS]), targets[first : first + BATCH_ROWS]
            )
            loss.backward()
            for rule in rules:
                rule.step()
                rule.zero_grad()
    return lambda held_out: torch.sigmoid(scores(held_out)).detach().numpy()


def main(library, format, train, held_out, predictions, stages, value):
    """Train on one file, write the probabilities for another to `predictions` and the seconds by stage as JSON.

    `library` is "EmbeddingBag", "liblinear", a name that ends in "SGDClassifier" or one of the list, `format`
    "svmlight" or "clicks", the other arguments but `value` are paths; `value` (text) is C, alpha or the passes.
    """
    times = [time.perf_counter()]
    import numpy as np
    import sklearn.linear_model  # noqa: F401

    if library == "EmbeddingBag":
        import torch  # noqa: F401
    elif library != "liblinear" and not library.endswith("SGDClassifier"):
        importlib.import_module(import_list().get(library).module)
    times.append(time.perf_counter())
    clicks = read_clicks_polars if library.startswith("polars") else read_clicks
    x, y, x_held_out = (read_svmlight if format == "svmlight" else clicks)(train, held_out)
    times.append(time.perf_counter())
    made = train_embedding_bag if library == "EmbeddingBag" else lambda *rest: train_listed(library, *rest)
    predict = made(x, y, float(value))
    times.append(time.perf_counter())
    np.savetxt(predictions, predict(x_held_out), fmt="%.6g")
    times.append(time.perf_counter())
    seconds = [end - start for start, end in itertools.pairwise(times)]
    Path(stages).write_text(json.dumps(dict(zip(("import", "read", "fit", "write"), seconds, strict=True))), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
