"""What the monitors say, as a table with a part for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from manyarms._base.tables import Cell, Table
from manyarms._base.text import counted, number
from manyarms.live.challenge import PROMOTED, RUNNING

COLUMNS = ("events", "mean", "at least", "at most")


def report_table(body: Mapping[str, Any]) -> Table:
    """The values first, then what watches over them."""
    skipped = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in body["skipped"].items() if count)
    notes = [f"not usable for weights: {skipped or 'none'}"]
    if body["unusable"]:
        notes.append(f"no values: {body['unusable']}")
    title = f"Live report, version {body['version']:,}: {counted(body['events'], 'settled event')}"
    return Table(title, notes=notes, parts=list(_parts(body)))


def _parts(body: Mapping[str, Any]) -> Iterator[Table]:
    if body["values"]:
        yield _values("", "value of", [(name, found) for name, found in body["values"].items()])
    if lift := body["lift"]:
        yield _values("", "lift over", [(f"the hold-out, {lift['share']:.1%}", lift)])
    if ratio := body["sample_ratio"]:
        said = "as it should be" if ratio["alarm"] is None else f"ALARM at event {ratio['alarm']:,}"
        rows = [
            (
                arm["arm"] + (" (hold-out)" if arm["held_out"] else ""),
                arm["events"],
                f"{arm['events'] / max(1, ratio['events']):.2%}",
                f"{arm['share']:.2%}",
            )
            for arm in ratio["arms"]
        ]
        yield Table(f"sample ratio: {said} (p = {ratio['p_value']:.3g})", ("arm", "events", "got", "should be"), rows)
    for name, check in body["propensities"].items():
        alarm = check["alarm"]
        said = "no alarm" if alarm is None else f"ALARM: {alarm['side']}, at event {alarm['event']:,}"
        events = counted(check["events"], "event")
        yield Table(f"propensities of {name}: mean weight {number(check['mean_weight'])} of {events}, {said}")
    for name, shadow in body["shadows"].items():
        part = shadow["differs"] / max(1, shadow["events"])
        events = counted(shadow["events"], "event")
        title = f"shadow {name}: would differ in {shadow['differs']:,} of {events} ({part:.1%})"
        notes = [f"no answer in {shadow['unable']:,}"] if shadow["unable"] else []
        yield _values(title, "value of", [(name, shadow["value"])] if shadow["value"] else [], notes)
    for one in body["challenges"]:
        yield _challenge(one)
    for name, one in (body.get("drift") or {}).items():
        yield _drift(name, one)


def _drift(name: str, one: Mapping[str, Any]) -> Table:
    if one["alarms"] is None:
        return Table(f"drift of {name}: not watched: counts need a reward_range")
    number_of = sum(found["overall"] + found["of_actions"] for found in one["alarms"].values())
    said = f"ALARM, {number_of:,} so far" if number_of else "no alarm"
    of = f"{counted(one['judged'], 'row')} judged of {one['rows']:,}"
    if not one["judged"]:
        settled = "judged are settled events, once few are waiting beside them, and none of an agent that forgets"
        return Table(f"drift of {name}: {of}; with a default reward, {settled}")
    rows = [
        (by, found["overall"], found["of_actions"], f"{found['evidence']:.3g} of {one['threshold']:.3g}")
        for by, found in one["alarms"].items()
    ]
    told = [notice["text"] for notice in one["notices"]]
    told = told[:1] + told[1:][-2:]  # when it began, and what came last
    columns = ("alarms", "over all rows", "of single actions", "evidence now")
    return Table(f"drift of {name}: {said}, {of}", columns, rows, told)


def _values(title: str, of: str, found: Sequence[tuple[str, Mapping[str, Any]]], notes: Sequence[str] = ()) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (name, one["events"], float(one["mean"]), float(one["low"]), float(one["high"])) for name, one in found
    ]
    return Table(title, (of, *COLUMNS), rows, notes)


def _challenge(one: Mapping[str, Any]) -> Table:
    gain = f"{one['gain']:+.4g}, at least {one['gain_low']:+.4g} (level {one['alpha']:.2g}, margin {one['margin']:g})"
    rows = [("gain", f"{gain}, {counted(one['events'], 'event')}")]
    if one["unable"]:
        rows.append(("no answer", f"in {one['unable']:,} of them"))
    if one["certified"]:
        rows.append(("certified", f"gain {one['certified']['gain']:+.4g}, value {one['certified']['value']:.4g}"))
    if one["guard"] and one["state"] != RUNNING:
        guard = one["guard"]
        evidence = f"evidence {guard['evidence']:.3g} of {guard['mean_time']:g}"
        rows.append(("guard", f"below {guard['below']:.4g}? {counted(guard['events'], 'event')}, {evidence}"))
    elif one["state"] == PROMOTED:
        rows.append(("guard", "none; the certified value is too near the least reward"))
    return Table(f"challenge {one['number']}, {one['name']}: {one['state']}", rows=rows)


__all__ = ["report_table"]
