"""Tables of the benchmarks' records: which columns a line of each file of results has.

`BENCH` is the table of kernels, steps and PyTorch loops, `FAIR` that of both sides compared with the best independent
ones, `EPOCHS` that of whole epochs, `FIT` that of trainings to a held-out quality, `END` that of whole processes from a
file to predictions, `WAITS` that of what a user waits for apart from training, `SELF` that of the self-trial's
outcomes, `ADVICE` that of advice and the sweeps that judge it, `CLUSTER` that of training on several machines.
"""

from functools import partial
from pathlib import Path

from workbench.store import Table

_table = partial(Table, folder=Path(__file__).with_name("columns"))

BENCH = _table("bench", "bench.jsonl", 1)
CLUSTER = _table("cluster", "bench-cluster.jsonl", 1)
END = _table("end", "bench-end.jsonl", 1)
WAITS = _table("waits", "bench-waits.jsonl", 1)
FAIR = _table("fair", "bench-fair.jsonl", 1)
EPOCHS = _table("epochs", "bench-epochs.jsonl", 1)
FIT = _table("fit", "bench-fit.jsonl", 3)
ADVICE = _table("advice", "bench-advise.jsonl", 1)
SELF = _table("self", "self.jsonl", 1)
