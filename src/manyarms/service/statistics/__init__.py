"""What a dashboard shows of a live store: counted while following its log, in memory that does not grow with events.

statistics      Statistics: tells all of it
following, entries      follows the log in bounded steps, and counts
minutes, recent, actions        counts by minute of the last day; the last plays; numbers by action
propensities, features, units   how likely what was done was; what contexts look like; how many units there were
latency, health, events         how long answers take; store, learners and complaints; events with their rewards
"""

from manyarms.service.statistics.statistics import Statistics

__all__ = ["Statistics"]
