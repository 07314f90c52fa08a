"""Many pieces of work at once, here or on a cluster: `map` over them, combine what comes back, train together.

base        what an engine does
local       worker processes on this machine, one thread each
cluster     a Ray cluster (extra `ray`)
mailbox     messages of its tasks on their way
opening     an engine by its name: "local", "ray", "ray://address"
"""

from __future__ import annotations

from manyarms.engine.base import Engine, WorkerDied
from manyarms.engine.local import Local, cores, local, tell
from manyarms.engine.opening import IN_THIS_PROCESS, On, checked_on, elsewhere, opened

__all__ = [
    "IN_THIS_PROCESS", "Engine", "Local", "On", "WorkerDied", "checked_on", "cores", "elsewhere", "local", "opened", "tell",
]  # fmt: skip
