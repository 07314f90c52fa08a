"""What the monitors say, as a dictionary and as text. All intervals hold at all times at once: they may be looked at at any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manyarms._base.tables import Shown, Table
from manyarms._base.typing import JSON, Spec
from manyarms.live.challenge import ROLLED_BACK, STRANDED, Challenge
from manyarms.live.drift_watch import ArmDrift
from manyarms.live.report_text import report_table
from manyarms.live.settings import Settings
from manyarms.live.watch import Watch
from manyarms.live.watched import unusable
from manyarms.logs.actions import ActionId
from manyarms.sequential import Lift, SampleRatio, ValueInterval
from manyarms.sequential.drift_alarm import Notice, notice_text

ALPHA = 0.05  # of the intervals, each by itself


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """What is watched on a live store. `body` has it as a dictionary of plain values; printed, it is a table."""

    body: Spec

    @classmethod
    def of(
        cls, watch: Mapping[str, JSON], settings: Settings, version: int, called: Callable[[int], ActionId] = int
    ) -> Report:
        """Of monitors as a view has them. called: what an action is called, by its row."""
        found = Watch.from_json(dict(watch))
        scale = _Scale(settings)
        return cls(
            {
                "version": version,
                "events": found.events,
                "skipped": dict(found.skipped),
                "unusable": unusable(settings),
                "values": {name: scale.value(value) for name, value in found.values.items()},
                "lift": scale.lift(found.holdout.lift)
                if found.holdout is not None and found.holdout.lift is not None
                else None,
                "sample_ratio": None if found.routing is None else _ratio(found.routing.laws, found.routing.ratio),
                "propensities": {
                    name: {
                        "events": check.count,
                        "mean_weight": check.small.mean,
                        "alarm": None
                        if check.alarm is None
                        else {"side": check.alarm.side, "event": check.alarm.round},
                    }
                    for name, check in found.checks.items()
                },
                "shadows": {
                    name: {
                        "events": shadow.seen,
                        "differs": shadow.differs,
                        "unable": shadow.unable,
                        "value": scale.value(shadow.value) if shadow.value.count else None,
                    }
                    for name, shadow in found.shadows.items()
                },
                "challenges": [scale.challenge(one) for one in found.challenges.made],
                "drift": None
                if found.drift is None
                else {name: _drift(one, found.drift.mean_time, called) for name, one in found.drift.arms.items()},
            }
        )

    def _table(self) -> Table:
        return report_table(self.body)


def alarms(watch: Mapping[str, Any], called: Callable[[int], ActionId] = int) -> list[str]:
    """What the monitors of a view complain of, in words. It costs nothing."""
    found = [
        f"propensities of {name} are {check['alarm'][0]}"
        for name, check in watch["checks"].items()
        if check["alarm"] is not None
    ]
    routing = watch["routing"]
    if routing is not None and routing[2] is not None and routing[2]["alarm"] is not None:
        found.append("arms do not get the shares that they should")
    return (
        found
        + [
            f"{one['name']} was promoted and fell: {one['state']}"
            for one in watch["challenges"]["made"]
            if one["state"] in (ROLLED_BACK, STRANDED)
        ]
        + drifted(watch, "model-free", called)
    )


def drifted(watch: Mapping[str, Any], by: str, called: Callable[[int], ActionId] = int) -> list[str]:
    """The first alarm of each agent whose rewards are no longer what it predicts, in words: by its "model", or "model-free"."""
    if watch.get("drift") is None:
        return []
    found = []
    for name, (alarm, *_) in watch["drift"][2].items():
        *counts, notices = (0, 0, []) if alarm is None else alarm["alarms"].get(by, (0, 0, []))
        if notices:
            row, side, action = notices[0]
            more = f", {sum(counts) - 1:,} more since" if sum(counts) > 1 else ""
            found.append(f"{name}: {_told(Notice(row, by, side, action), called)}{more}")
    return found


def _told(notice: Notice, called: Callable[[int], ActionId]) -> str:
    return notice_text(notice, None if notice.action is None else called(notice.action))


def _drift(one: ArmDrift, mean_time: float, called: Callable[[int], ActionId]) -> dict[str, Any]:
    alarm = one.alarm
    if alarm is None:
        return {"rows": one.seen, "judged": 0, "alarms": None, "mean_time": mean_time, "at": None, "notices": []}
    now = alarm.evidence()
    by = {
        name: {"overall": counts.overall, "of_actions": counts.of_actions, "evidence": now[name]}
        for name, counts in alarm.alarms.items()
    }
    notices = [
        {
            "row": notice.row,
            "by": notice.by,
            "side": notice.side,
            "action": None if notice.action is None else called(notice.action),
            "text": _told(notice, called),
        }
        for notice in alarm.notices
    ]
    return {
        "rows": one.seen, "judged": alarm.count, "alarms": by, "threshold": alarm.threshold, "mean_time": alarm.mean_time,
        "at": one.at, "notices": notices,
    }  # fmt: skip


class _Scale:
    """From [0, 1] to the units of rewards."""

    def __init__(self, settings: Settings) -> None:
        self.low = 0.0 if settings.reward_range is None else settings.reward_range[0]
        self.span = settings.span

    def value(self, value: ValueInterval) -> dict[str, Any]:
        mean, low, high = value.value.mean, value.lower(ALPHA / 2), value.upper(ALPHA / 2)
        return {"events": value.count} | {
            name: self.low + self.span * x for name, x in (("mean", mean), ("low", low), ("high", high))
        }

    def lift(self, lift: Lift) -> dict[str, Any]:
        low, high = lift.interval(ALPHA)
        found = {"mean": lift.mean * self.span, "low": low * self.span, "high": high * self.span}
        return {"events": lift.count, "share": lift.share, **found}

    def challenge(self, one: Challenge) -> dict[str, Any]:
        known = one.certified
        guard = one.detector
        return {
            "name": one.name,
            "state": one.state,
            "number": one.number,
            "alpha": one.level,
            "margin": one.margin * self.span,
            "since": one.since,
            "at": one.at,
            "ended": one.ended,
            "events": one.gain.count,
            "unable": one.unable,
            "gain": one.gain.mean * self.span,
            "gain_low": one.gain.lower(one.level) * self.span,
            "certified": None
            if known is None
            else {"gain": known["gain"] * self.span, "value": self.low + known["value"] * self.span},
            "guard": None
            if guard is None
            else {
                "below": self.low + guard.mean * self.span,
                "events": guard.count,
                "evidence": guard.statistic,
                "mean_time": guard.mean_time,
            },
        }


def _ratio(laws: Sequence[Sequence[Any]], ratio: SampleRatio | None) -> dict[str, Any] | None:
    if ratio is None:
        return None
    arms = [
        {"arm": name, "held_out": held_out, "share": share, "events": number}
        for (share, name, held_out), number in zip(laws, ratio.counts, strict=True)
    ]
    return {"events": ratio.count, "arms": arms, "p_value": ratio.p_value, "alarm": ratio.alarm}


__all__ = ["Report", "alarms", "drifted"]
