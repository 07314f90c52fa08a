"""A clock that the system's clock cannot turn back.

The log's times never fall. Were that all, they would stand still for an hour when the system's clock is set back by one: no
waiting time would end meanwhile, and decisions made in that hour would look as old as it lasted as soon as the clock has caught
up, and have their defaults at once. So time goes on from the last known moment by a clock that measures only what has passed.

A process that starts while the system's clock is behind takes the log's last time for the present: that is at least so late.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class SteadyClock:
    """Seconds since 1970: the system's time, or the last known moment and what has passed since, whichever is later."""

    def __init__(self, wall: Callable[[], float] = time.time, passing: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._passing = passing
        self._known = float(wall())
        self._then = passing()

    def __call__(self) -> float:
        """Now."""
        then, self._then = self._then, self._passing()
        self._known = max(self._wall(), self._known + (self._then - then))
        return self._known

    def read(self) -> float:
        """Now, for any thread: nothing is changed by it."""
        return max(self._wall(), self._known + (self._passing() - self._then))

    def after(self, moment: float) -> float:
        """Now, which is not before a moment that has been: another process may know better what time it is."""
        self._known = max(self(), moment)
        return self._known


__all__ = ["SteadyClock"]
