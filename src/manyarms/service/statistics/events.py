"""The events of a store, newest first, with their rewards: read from the store whenever somebody asks."""

from __future__ import annotations

import json
from typing import Any

from manyarms._base import validate
from manyarms.errors import UnknownAction
from manyarms.live import log, naming
from manyarms.live.records import RewardRecord
from manyarms.live.state import View
from manyarms.live.stores.database import Reader
from manyarms.logs.actions import ActionId

MOST = 500  # events of one answer
LOOKED_AT = 100_000  # positions that a filter goes through for one answer
_ACTIVE = "active + (SELECT COUNT(*) FROM activations WHERE activations.decision = decisions.position)"
_COLUMNS = f"position, id, at, unit, arm, version, actions, propensity, propensity_kind, details, {_ACTIVE}, erased"


def an_action(view: View, text: ActionId) -> int:
    """The row of an action that came as a text, as it does in the path of an address."""
    names = view.schema.catalogue
    if isinstance(text, str) and (names is None or names.numbered):
        if not (text.isascii() and text.removeprefix("-").isdecimal() and len(text) < 20):
            raise UnknownAction("action", validate.describe(text), "an integer: actions are numbered here")
        text = int(text)
    return naming.row_of(view, "action", text)


def listed(
    reader: Reader,
    view: View,
    *,
    limit: int = 50,
    before: int | None = None,
    arm: str | None = None,
    action: ActionId | None = None,
    since: float | None = None,
    text: str | None = None,
    rewarded: bool = False,
) -> dict[str, Any]:
    """Events decided before a position of the log, and where to go on (`next`, None at the end).

    text: a part of an event's id or of its unit. A filter looks at a bounded part of the log at a time: `next` may come with few
    events, or none.
    """
    [(last, _)] = reader.execute("SELECT position, at FROM counter")
    end = last + 1 if before is None else min(before, last + 1)
    where, parameters = ["position < ?", "position >= ?"], [end, end - LOOKED_AT]
    filters: list[tuple[str, list[Any]]] = []
    if arm is not None:
        filters.append(("arm = ?", [arm]))
    if action is not None:
        row = an_action(view, action)
        patterns = [f"[{row}]", f"[{row},%", f"%,{row},%", f"%,{row}]"]
        filters.append(("(actions = ? OR actions LIKE ? OR actions LIKE ? OR actions LIKE ?)", patterns))
    if since is not None:
        filters.append(("at >= ?", [since]))
    if text:
        pattern = "%" + text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        filters.append(("(id LIKE ? ESCAPE '\\' OR unit LIKE ? ESCAPE '\\')", [pattern, pattern]))
    if rewarded:
        filters.append(("EXISTS (SELECT 1 FROM rewards WHERE rewards.decision = decisions.position)", []))
    for clause, values in filters:
        where.append(clause)
        parameters += values
    number = validate.count("limit", limit, most=MOST)
    sql = f"SELECT {_COLUMNS} FROM decisions WHERE {' AND '.join(where)} ORDER BY position DESC LIMIT {number}"
    rows = reader.execute(sql, parameters)
    oldest = reader.execute("SELECT position, at FROM decisions ORDER BY position LIMIT 1")
    reached = rows[-1][0] if len(rows) == number else end - LOOKED_AT
    more = bool(oldest) and reached > oldest[0][0]
    if more and since is not None and not rows:
        more = bool(reader.execute("SELECT 1 FROM decisions WHERE position < ? AND at >= ? LIMIT 1", (reached, since)))
    return {"events": _shown(reader, view, rows), "next": reached if more else None}


def _shown(reader: Reader, view: View, rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    positions = [row[0] for row in rows]
    by_event: dict[int, list[RewardRecord]] = {}
    for (decision, _), rewards in log.rewards_of(reader, positions, 2**62).items():
        by_event.setdefault(decision, []).extend(rewards)
    computed = log.propensities_of(reader, [row[0] for row in rows if row[7] is None])
    found = []
    for position, id, at, unit, arm, version, actions, propensity, kind, details, active, erased in rows:
        told, taken = json.loads(details), json.loads(actions)
        if propensity is None and position in computed and computed[position][3] >= 0:
            propensity, kind = computed[position][0], "estimated"
        rewards = sorted(by_event.get(position, []), key=lambda one: one.position)
        first = [one.value for one in rewards if taken and one.action == taken[0]]
        found.append(
            {
                "id": id,
                "position": position,
                "at": at,
                "unit": unit,
                "arm": arm,
                "version": version,
                "actions": naming.named(view, taken),
                "propensity": propensity,
                "propensity_kind": kind,
                "greedy": told.get("greedy"),
                "held_out": told.get("held_out", False),
                "active": bool(active),
                "erased": bool(erased),
                "reward": view.agreed.of(position).combined(first) if first else None,
                "rewards": [
                    {"action": naming.name_of(view, one.action), "id": one.id, "value": one.value, "at": one.at}
                    for one in rewards
                ],
            }
        )
    return found


__all__ = ["MOST", "an_action", "listed"]
