"""What the monitors say, as a dictionary and as text. All intervals hold at all times at once: they may be looked at at any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manyarms._base.tables import Shown, Table
from manyarms._base.typing import JSON, Spec
from manyarms.live.challenge import ROLLED_BACK, STRANDED, Challenge
from manyarms.live.report_text import report_table
from manyarms.live.settings import Settings
from manyarms.live.watch import Watch
from manyarms.live.watched import unusable
from manyarms.sequential import Lift, SampleRatio, ValueInterval

ALPHA = 0.05  # of the intervals, each by itself


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """What is watched on a live store. `body` has it as a dictionary of plain values; printed, it is a table."""

    body: Spec

    @classmethod
    def of(cls, watch: Mapping[str, JSON], settings: Settings, version: int) -> Report:
        """Of monitors as a view has them."""
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
            }
        )

    def _table(self) -> Table:
        return report_table(self.body)


def alarms(watch: Mapping[str, Any]) -> list[str]:
    """What the monitors of a view complain of, in words. It costs nothing."""
    found = [
        f"propensities of {name} are {check['alarm'][0]}"
        for name, check in watch["checks"].items()
        if check["alarm"] is not None
    ]
    routing = watch["routing"]
    if routing is not None and routing[2] is not None and routing[2]["alarm"] is not None:
        found.append("arms do not get the shares that they should")
    return found + [
        f"{one['name']} was promoted and fell: {one['state']}"
        for one in watch["challenges"]["made"]
        if one["state"] in (ROLLED_BACK, STRANDED)
    ]


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


__all__ = ["Report", "alarms"]
