"""Live decisions: what a web handler or a worker needs around an agent, in one process or several, with nothing lost.

live = ma.live.open("shop.db", agent)          # SQLite; or a PostgreSQL address
d = live.decide(context, k=3)                  # d.id, d.actions, d.version
live.reward(d.id, 1.0)                         # now, tomorrow, twice: counted once

export, replay, compact: a store as a log, verified, and made smaller; backup, restore: copied while it is in use, and put back.
The commands of the same names do the same.
"""

from manyarms.live.backup import BackedUp, Restored, backup, restore
from manyarms.live.compaction import Compaction, compact
from manyarms.live.deployment import Deployment
from manyarms.live.exporting import Exported, export
from manyarms.live.live import Live, LiveDecision
from manyarms.live.opening import open
from manyarms.live.replaying import Replayed, replay
from manyarms.live.report import Report
from manyarms.live.settings import Settings
from manyarms.live.uploads import Uploaded
from manyarms.live.why import Why

__all__ = [
    "BackedUp",
    "Compaction",
    "Deployment",
    "Exported",
    "Live",
    "LiveDecision",
    "Replayed",
    "Report",
    "Restored",
    "Settings",
    "Uploaded",
    "Why",
    "backup",
    "compact",
    "export",
    "open",
    "replay",
    "restore",
]
