"""What the monitors say, as a dictionary and as text. All intervals hold at all times at once: they may be looked at at any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manyarms.live.challenge import PROMOTED, ROLLED_BACK, RUNNING, STRANDED, Challenge
from manyarms.live.settings import Settings
from manyarms.live.watch import Watch
from manyarms.live.watched import unusable
from manyarms.sequential import Lift, SampleRatio, ValueInterval

ALPHA = 0.05  # of the intervals, each by itself


@dataclass(frozen=True)
class Report:
    """What is watched on a live store. `body` has it as a dictionary of plain values; printed, it is a table."""

    body: dict[str, Any]

    @classmethod
    def of(cls, watch: Mapping[str, Any], settings: Settings, version: int) -> Report:
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

    def __str__(self) -> str:
        return "\n".join(_lines(self.body))

    __repr__ = __str__


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


# ---- as text


def _lines(body: Mapping[str, Any]) -> list[str]:
    skipped = ", ".join(
        f"{number:,} {reason.replace('_', ' ')}" for reason, number in body["skipped"].items() if number
    )
    lines = [
        f"Live report, version {body['version']:,}: {body['events']:,} settled events",
        f"  not usable for weights: {skipped or 'none'}",
    ]
    if body["unusable"]:
        lines.append(f"  no values: {body['unusable']}")
    if body["values"]:
        lines += ["", *_table("value of", [[name, *_interval(found)] for name, found in body["values"].items()])]
    if body["lift"]:
        lines += ["", *_table("lift over", [[f"the hold-out, {body['lift']['share']:.1%}", *_interval(body["lift"])]])]
    if ratio := body["sample_ratio"]:
        said = "as it should be" if ratio["alarm"] is None else f"ALARM at event {ratio['alarm']:,}"
        lines += ["", f"sample ratio: {said} (p = {ratio['p_value']:.3g})"]
        for arm in ratio["arms"]:
            name = arm["arm"] + (" (hold-out)" if arm["held_out"] else "")
            got = arm["events"] / max(1, ratio["events"])
            lines.append(f"  {name:<24} {arm['events']:>9,} events {got:>8.2%}, should be {arm['share']:.2%}")
    for name, check in body["propensities"].items():
        said = (
            "no alarm"
            if check["alarm"] is None
            else f"ALARM: {check['alarm']['side']}, at event {check['alarm']['event']:,}"
        )
        lines += [
            "",
            f"propensities of {name}: mean weight {check['mean_weight']:.4g} of {check['events']:,} events, {said}",
        ]
    for name, shadow in body["shadows"].items():
        part = shadow["differs"] / max(1, shadow["events"])
        lines += [
            "",
            f"shadow {name}: would differ in {shadow['differs']:,} of {shadow['events']:,} events ({part:.1%})",
        ]
        if shadow["unable"]:
            lines.append(f"  no answer in {shadow['unable']:,}")
        if shadow["value"]:
            lines += _table("value of", [[name, *_interval(shadow["value"])]])
    for one in body["challenges"]:
        lines += ["", *_challenge(one)]
    return lines


def _challenge(one: Mapping[str, Any]) -> list[str]:
    lines = [
        f"challenge {one['number']}, {one['name']}: {one['state']}",
        f"  gain {one['gain']:+.4g}, at least {one['gain_low']:+.4g} (level {one['alpha']:.2g}, margin {one['margin']:g}), "
        f"{one['events']:,} events",
    ]
    if one["unable"]:
        lines.append(f"  no answer in {one['unable']:,} of them")
    if one["certified"]:
        lines.append(f"  certified: gain {one['certified']['gain']:+.4g}, value {one['certified']['value']:.4g}")
    if one["guard"] and one["state"] != RUNNING:
        guard = one["guard"]
        lines.append(
            f"  guard: below {guard['below']:.4g}? {guard['events']:,} events, evidence {guard['evidence']:.3g} of "
            f"{guard['mean_time']:g}"
        )
    elif one["state"] == PROMOTED:
        lines.append("  guard: none; the certified value is too near the least reward")
    return lines


def _interval(found: Mapping[str, Any]) -> list[str]:
    return [f"{found['events']:,}", f"{found['mean']:.4g}", f"{found['low']:.4g}", f"{found['high']:.4g}"]


def _table(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    heads = [title, "events", "mean", "at least", "at most"]
    widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in [heads, *rows]
    ]


__all__ = ["Report", "alarms"]
