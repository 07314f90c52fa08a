"""Many pieces of work at once: `map` over them, and fold what comes back.

local       worker processes on this machine, one thread each
"""

from __future__ import annotations

from manyarms.engine.local import Local, WorkerDied, cores, local, tell

__all__ = ["Local", "WorkerDied", "cores", "local", "tell"]
