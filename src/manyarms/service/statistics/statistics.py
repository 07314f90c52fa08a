"""Statistics: what a dashboard shows of a live store, counted while following its log.

The log is followed by position, so that what other processes of the store decide is counted, too; from the last day on, but
with at most 100,000 decisions from before the start. Memory does not grow with events: rings of minutes and of the last plays,
and numbers by action. Values, lift, sample ratio and checks of propensities are those of `live.report()`, and are not computed
again here.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from manyarms._base import validate
from manyarms.errors import ManyArmsError, StorageError, UnknownAction
from manyarms.live import Live, naming
from manyarms.live.learner import Background
from manyarms.live.state import View
from manyarms.live.watched import unusable
from manyarms.logs.actions import ActionId
from manyarms.service.places import without_paths
from manyarms.service.statistics import events, health
from manyarms.service.statistics.actions import concentration
from manyarms.service.statistics.following import Following, catalogue_size
from manyarms.service.statistics.latency import Latency
from manyarms.service.statistics.minutes import DAY, mean_reward

EVERY = 1.0  # seconds between two looks at the log
PAUSE = 2.0  # times the time that a step took, before the next: decisions need the interpreter more
RATE = 5  # minutes over which rates are averages
ALPHA = 0.05  # of an action's interval
TOP = 12  # most played actions that are named
MOST_KEPT = 32


class Statistics:
    """What is counted of a live store. `start` follows its log in a thread, `close` ends that. Threads may share it.

    status: how the store is, and whatever else it is to complain of; clock: seconds since 1970, as the store's.
    """

    def __init__(
        self,
        live: Live,
        *,
        status: Callable[[], dict[str, Any]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._live, self._status = live, status or live.status
        self._counted = Following(live, clock)
        self._latency = Latency()
        self._failure: str | None = None
        self._kept: dict[str, tuple[float, Any]] = {}
        self._keeping = threading.Lock()
        self._closed = threading.Event()
        self._thread: Background | None = None

    # ---- its life

    def start(self, every: float = EVERY) -> None:
        """Follow the log in the background, from now on."""
        if self._thread is None and not self._closed.is_set():
            self._thread = Background("manyarms-statistics", self._round, every, self._failed)

    def close(self) -> None:
        """Stop following."""
        self._closed.set()
        if self._thread is not None:
            self._thread.stop()

    def catch_up(self, timeout: float = 60.0) -> None:
        """Count all that is in the store now, here; what the thread does by itself every second."""
        self._counted.catch_up(timeout)
        with self._keeping:
            self._kept.clear()

    def _round(self) -> None:
        while not self._closed.is_set():
            begun = time.monotonic()
            if not self._counted.follow():
                return
            self._closed.wait(PAUSE * (time.monotonic() - begun))

    def _failed(self, error: ManyArmsError | None) -> None:
        self._failure = None if error is None else without_paths(str(error), self._live.database)

    def observe_latency(self, route: str, seconds: float) -> None:
        """An answer of this process to a call of a route took so long. Quick, from any thread."""
        self._latency.observe(route, seconds)

    # ---- to look at

    def summary(self, minutes: int = 60) -> dict[str, Any]:
        """All that a dashboard shows at once, as plain values; minutes: how far back its curves go.

        Computed at most once a second, however often it is asked for.
        """
        minutes = validate.count("minutes", minutes, most=DAY)
        body: dict[str, Any] = self._made(f"summary {minutes}", 1.0, lambda: plain(self._summary(minutes)))
        return body

    def _summary(self, minutes: int) -> dict[str, Any]:
        live, counted, view = self._live, self._counted, self._live.view
        status, settings = self._status(), live.settings
        default = settings.default
        lag = self._lag(status, view)
        latency = self._latency.body()
        found = {
            "version": view.version,
            "arms": sorted(view.arms),
            "deployment": status["deployment"],
            "settings": {name: getattr(settings, name) for name in ("aggregate", "default", "wait", "reward_range")},
            **{name: status[name] for name in ("learned", "replaced", "rows_refused", "settled")},
            "lag": lag,
            "latency": latency,
            "coverage": self._made("coverage", 5.0, lambda: self._coverage(view), counted.caught_up),
            "report": self._made("report", math.inf, lambda: live.report().body, view.version),
            "capped": len(view.capped),
            "retired": len(view.retired),
        }
        size = self._made("size", 10.0, self._size)
        with counted.lock:
            now = counted.now
            day, last = counted.minutes.totals(now), counted.minutes.totals(now, RATE)
            earned = counted.minutes.earned(now)
            features = counted.features.body(now)
            together = [sum(column) for column in zip(*earned.values(), strict=True)] or [0.0, 0.0, 0.0]
            return found | {
                "at": now,
                "since": counted.since,
                "ready": counted.caught_up,
                "behind": counted.behind,
                "store": {"kind": live.database.kind, "bytes": size, "position": counted.last[0]},
                "day": day,
                "rates": {"minutes": RATE, "decisions": last["decisions"] / RATE, "rewards": last["rewards"] / RATE},
                "mean_reward": mean_reward(together, default),
                "by_arm": {
                    name: {"decisions": one[0], "rewarded": one[1], "mean": mean_reward(one, default)}
                    for name, one in earned.items()
                },
                "series": counted.minutes.series(now, minutes, default),
                "exploration": {
                    "known": day["greedy_known"],
                    "share": _share(day["explored"], day["greedy_known"]),
                    "new": _share(day["new_actions"], day["played"]),
                },
                "propensities": counted.propensities.body(now, day["decisions"]),
                "features": features,
                "units": {
                    "share": _share(day["units"], day["decisions"]),
                    "repeated": _share(day["repeated"], day["units"]),
                    "distinct": counted.units.number(),
                },
                "alarms": health.complaints(status, features["warnings"], lag, now, self._failure, day),
            }

    def action(self, id: ActionId, minutes: int = DAY) -> dict[str, Any]:
        """What is known of one action, since the log was followed; an id that came as a text may stand for a number."""
        view, counted, settings = self._live.view, self._counted, self._live.settings
        row = events.an_action(view, id)
        size = catalogue_size(view)
        if size is not None and row >= size:
            raise UnknownAction("action", validate.describe(id), f"an action below {size:,}")
        reason = unusable(settings)
        with counted.lock:
            counts = _with_mean(counted.actions.of(row), settings.default)
            value = counted.actions.interval(row)
            series = counted.recent.series(row, counted.now, minutes)
            since = counted.since
        interval = None
        if settings.reward_range is not None and reason is None and value.count:
            ends = {"mean": value.value.mean, "low": value.lower(ALPHA / 2), "high": value.upper(ALPHA / 2)}
            scaled = {name: settings.reward_range[0] + settings.span * end for name, end in ends.items()}
            interval = {"events": value.count, "alpha": ALPHA, **scaled}
        body: dict[str, Any] = plain(
            {
                "action": naming.name_of(view, row),
                "row": row,
                "since": since,
                "retired": row in view.retired,
                "capped": row in view.capped,
                **counts,
                "interval": interval,
                "no_interval": reason,
                "series": series,
            }
        )
        return body

    def events(
        self,
        limit: int = 50,
        before: int | None = None,
        arm: str | None = None,
        action: ActionId | None = None,
        since: float | None = None,
        *,
        text: str | None = None,
        rewarded: bool = False,
    ) -> dict[str, Any]:
        """Events, newest first, with their rewards: {"events": [...], "next": where to go on, as `before`}.

        text: a part of an event's id or unit. rewarded: only those with a reward.
        """
        options: dict[str, Any] = {"limit": limit, "before": before, "arm": arm, "action": action, "since": since}
        options |= {"text": text, "rewarded": rewarded}
        try:
            with self._live.database.reading() as reader:
                found = events.listed(reader, self._live.view, **options)
        except IndexError:  # an action that another process has heard of before
            view = self._live.follow()
            with self._live.database.reading() as reader:
                found = events.listed(reader, view, **options)
        body: dict[str, Any] = plain(found)
        return body

    # ---- parts that cost something

    def _made(self, name: str, seconds: float, make: Callable[[], Any], of: object = None) -> Any:
        """What was made so many seconds ago at most, of the same."""
        now = time.monotonic()
        with self._keeping:
            kept = self._kept.get(name)
        if kept is not None and now - kept[0] < seconds and kept[1][0] == of:
            return kept[1][1]
        found = make()
        with self._keeping:
            while len(self._kept) >= MOST_KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[name] = (now, (of, found))
        return found

    def _lag(self, status: dict[str, Any], view: View) -> dict[str, Any]:
        """What waits to be folded: entries, and seconds of the oldest; when the lease of the learner ends."""
        found: dict[str, Any] = {"entries": status["waiting"], "seconds": None, "lease_ends": None}
        found["here"] = status["learner"]
        try:
            with self._live.database.reading() as reader:
                oldest = health.oldest_waiting(reader, view.upto)
                found["lease_ends"] = health.lease_ends(reader)
        except StorageError:  # `status` tells of it
            return found
        found["seconds"] = 0.0 if oldest is None else max(0.0, self._counted.now - oldest)
        found["entries"] = 0 if oldest is None else found["entries"]
        return found

    def _size(self) -> int | None:
        try:
            return health.store_bytes(self._live.database)
        except StorageError:
            return None

    def _coverage(self, view: View) -> dict[str, Any]:
        size = catalogue_size(view)
        counted = self._counted
        with counted.lock:
            found = concentration(counted.actions.played(), None if size is None else size - len(view.retired))
            top = [(row, counted.actions.of(row)) for row in counted.actions.most_played(TOP)]
        default = self._live.settings.default
        found["top"] = [{"action": self._named(view, row), **_with_mean(one, default)} for row, one in top]
        return found

    def _named(self, view: View, row: int) -> ActionId:
        """The id of an action that may be newer than what is decided with here."""
        try:
            return naming.name_of(view, row)
        except IndexError:
            return naming.name_of(self._live.follow(), row)


def plain(value: Any) -> Any:
    """The value as JSON has it: no numpy, and nothing in the place of what is not a number."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _with_mean(counts: dict[str, Any], default: float | None) -> dict[str, Any]:
    """Counts of an action, and the mean reward of its plays; those without a reward count with the default."""
    return counts | {"mean": mean_reward((counts["plays"], counts["rewarded"], counts["total"]), default)}


__all__ = ["Statistics"]
