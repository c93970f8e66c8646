"""Tables of the benchmarks' records: which columns a line of each file of results has.

All have the common columns of `columns/common.toml`, then those of the file of the suite.
"""

from functools import partial
from pathlib import Path

from workbench.store import Table

_table = partial(Table, folder=Path(__file__).with_name("columns"))

KERNELS, STEP, PYTORCH = (
    _table("bench", f"bench-{suite}.jsonl", 2, base="common") for suite in ("kernels", "step", "pytorch")
)
CLUSTER = _table("cluster", "bench-cluster.jsonl", 2, base="common")
END = _table("end", "bench-end.jsonl", 2, base="common")
WAITS = _table("waits", "bench-waits.jsonl", 2, base="common")
FAIR = _table("fair", "bench-fair.jsonl", 2, base="common")
EPOCHS = _table("epochs", "bench-epochs.jsonl", 2, base="common")
LIBRARIES = _table("libraries", "bench-libraries.jsonl", 2, base="common")
FIT = _table("fit", "bench-fit.jsonl", 4, base="common")
ADVICE = _table("advice", "bench-advise.jsonl", 2, base="common")
SELF = _table("self", "self.jsonl", 2, base="common")
ALL = (KERNELS, STEP, PYTORCH, FAIR, EPOCHS, FIT, END, WAITS, CLUSTER, ADVICE, LIBRARIES, SELF)
