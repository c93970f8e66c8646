"""Training on more than one machine: a store whose rows are shared by shards, each of which answers many trainers.

`ShardedStore` is the store of a trainer, `Shard` what a shard does with a message, `Transport` how the two meet:
`LocalTransport` within a process. What they say to each other is in `workbench.cluster.messages`, when a step is done
in `workbench.cluster.shard`, which rows are whose in `workbench.cluster.partition`.
"""

from workbench.cluster.channel import RolledBackError, TimedOutError, Traffic
from workbench.cluster.messages import Message
from workbench.cluster.partition import Partition
from workbench.cluster.shard import Shard
from workbench.cluster.sharded import ShardedStore
from workbench.cluster.transport import LocalTransport, Transport

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
