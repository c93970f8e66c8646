"""The tables of results: benchmarks, clusters, comparisons, trainings to a quality, trials, self-trials.

The columns of each are described in a file of the folder `columns`.
"""

from workbench import settings
from workbench.store.table import Table

BENCH = Table("bench", "bench.jsonl", 1)
CLUSTER = Table("cluster", "bench-cluster.jsonl", 1)
END = Table("end", "bench-end.jsonl", 1)
WAITS = Table("waits", "bench-waits.jsonl", 1)
FAIR = Table("fair", "bench-fair.jsonl", 1)
EPOCHS = Table("epochs", "bench-epochs.jsonl", 1)
FIT = Table("fit", "bench-fit.jsonl", 3)
TRIALS = Table(
    "trials",
    "trials.jsonl",
    3,
    {setting.column or setting.name: f"{setting.kind}: {setting.meaning}" for setting in settings.SETTINGS},
)
ADVICE = Table("advice", "bench-advise.jsonl", 1)
SELF = Table("self", "self.jsonl", 1)
