"""Several machines: sweeps by the workers of a Dask cluster, and training on a store whose rows are shared by shards.

Sweeps. `workbench sweep SPEC --cluster tls://HOST:PORT` measures on the machines of a Dask scheduler; a worker with the
resource "machine" stands for its machine, and each trial is a task that holds it. All candidates and rounds of a
comparison are measured on one machine, all comparisons of a group on machines of the same hardware; records, reports
and verdicts keep machines apart. The run folder is here: when workers are lost the others do what is left, when this
machine is, the next start does.

Training. Every trainer runs the same script and takes its slices of every batch:

    run = dask_transport.place(client, shards=4, trainers=2)                      # once, by whoever has the client
    store = ShardedStore(DaskTransport(run), trainer)                             # in each trainer, numbered from 0
    module = Module(symbol, store=store).bind(batches).initialise().set_optimizer("adagrad", learning_rate=0.1)
    module.fit(batches, epochs=3)
    store.save_shards("checkpoint")           # a file a shard; load_shards goes on with any number of shards

`ShardedStore` is the store of a trainer, `Shard` what a shard does with a message, `Transport` how the two meet:
`LocalTransport` within a process. What they say to each other is in `workbench.cluster.messages`, when a step is done
in `workbench.cluster.transport`, which rows are whose in `workbench.cluster.partition`.

Whom to let in. A Dask scheduler runs what its clients send it, as the user who started it: whoever reaches it can do
what you can. Shards are placed on clusters of this machine, or on encrypted ones, whose certificates say who may come
(`workbench.cluster.security`); all others are refused. Messages of ours are JSON and arrays, never pickles.
"""

from workbench.cluster.messages import Message
from workbench.cluster.partition import Partition
from workbench.cluster.sharded import ShardedStore
from workbench.cluster.transport import LocalTransport, RolledBackError, Shard, TimedOutError, Traffic, Transport

__all__ = [
    "LocalTransport",
    "Message",
    "Partition",
    "RolledBackError",
    "Shard",
    "ShardedStore",
    "TimedOutError",
    "Traffic",
    "Transport",
]
