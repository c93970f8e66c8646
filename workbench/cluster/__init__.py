"""Several machines: sweeps by the workers of a Dask cluster, and training by the ranks of an MPI job.

Sweeps. `workbench sweep SPEC --cluster tls://HOST:PORT` measures on the machines of a Dask scheduler; a worker with the
resource "machine" stands for its machine, and each trial is a task that holds it. All candidates and rounds of a
comparison are measured on one machine, all comparisons of a group on machines of the same hardware; records, reports
and verdicts keep machines apart. The run folder is here: when workers are lost the others do what is left, when this
machine is, the next start does.

Training. Every rank runs the same script, takes its slices of every batch, and owns a part of the rows of each table:

    store = MpiStore()                        # mpiexec -n 4 python -m mpi4py script.py
    module = Module(symbol, store=store).bind(batches).initialise().set_optimizer("adagrad", learning_rate=0.1)
    module.fit(batches, epochs=3)
    store.save_shards("checkpoint")           # a file a rank; load_shards continues with any number of ranks

Which rows are whose is in `workbench.cluster.partition`, what is sent in `workbench.cluster.exchange`.

Whom to let in. A Dask scheduler runs what its clients send it, as the user who started it: one that other machines
reach without encryption is refused (`workbench.cluster.security`). MPI jobs are started by mpiexec, ssh or SLURM, under
their rules.
"""

from workbench.cluster.partition import Partition
from workbench.cluster.store import MpiStore, OneRank

__all__ = ["MpiStore", "OneRank", "Partition"]
