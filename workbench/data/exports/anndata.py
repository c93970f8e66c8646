"""An .h5ad file of AnnData: X csr, labels and groups among the observations."""

from pathlib import Path
from typing import Any

from workbench.data.dataset.record import Dataset
from workbench.data.exports.contract import Export, in_memory, register


def write(dataset: Dataset, path: Path) -> None:
    """X whole, `obs["label"]` (names of classes), or `obsm["labels"]` where a row has several, and `obs["group"]`."""
    import anndata
    import pandas as pd

    observed = pd.DataFrame(index=_named(dataset.rows))
    several: dict[str, Any] = {}
    if dataset.y.ndim == 1:
        names = pd.Index(list(dataset.classes), dtype=object)
        observed["label"] = pd.Categorical.from_codes(dataset.y, names) if dataset.classes else dataset.y
    else:
        several["labels"] = dataset.y
    if dataset.groups is not None:
        observed["group"] = dataset.groups
    columns = pd.DataFrame(index=_named(dataset.features))
    made = anndata.AnnData(X=in_memory(dataset), obs=observed, var=columns, obsm=several)
    made.uns["labels"] = {"kind": dataset.kind, "classes": list(dataset.classes)}
    made.write_h5ad(path)


def _named(count: int) -> Any:
    """Return numbers as text, of Python's own type: AnnData knows no other."""
    import pandas as pd

    return pd.Index([str(number) for number in range(count)], dtype=object)


register(Export("anndata", write, "an .h5ad file, X csr, labels in obs", "anndata", "exchange"))
