"""The edge of a live store: ids and contexts as callers have them, in the rows and vectors that the log and the arms know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import ActionContexts, ContextLike
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.live.arguments import a_question, action_ids
from manyarms.live.records import DecisionRecord, Question, RewardRecord
from manyarms.live.state import View
from manyarms.logs.actions import ActionId
from manyarms.logs.contexts import encoded
from manyarms.logs.filters import Filter


def asked(
    view: View,
    x: ContextLike | None,
    candidates: Filter,
    exclude: Filter,
    k: int | None,
    action_contexts: ActionContexts | None,
) -> Question:
    """A question, checked, in rows and vectors."""
    vector = None if x is None else encoded(view.schema.encoder, x)
    chosen = None if candidates is None else rows_of(view, "candidates", candidates)
    if chosen is not None and view.schema.catalogue is not None and view.learning is not None:
        for row in view.retired.intersection(chosen):  # agents refuse it, too, but do not know its id
            came = f"action {validate.describe(name_of(view, row))}, which is retired"
            raise UnknownAction("candidates", came, "actions that are not retired")
    out = None if exclude is None else known_rows(view, "exclude", exclude)
    return a_question(vector, chosen, out, k, action_contexts)


def rows_of(view: View, name: str, ids: Any) -> list[int]:
    """The rows of ids."""
    names = view.schema.catalogue
    rows: list[int] = action_ids(name, ids) if names is None else names.rows(ids, name).tolist()
    return rows


def known_rows(view: View, name: str, ids: Any) -> list[int]:
    """The rows of those ids that are known: an action that is not there need not be left out."""
    names = view.schema.catalogue
    if names is not None:
        found: list[int] = names.known(ids, name).tolist()
        return found
    rows = validate.integers(name, ids, 1, "a list of integers, ids of actions")
    return [row for row in rows.tolist() if row >= 0]


def row_of(view: View, name: str, action: object) -> int:
    """The row of one id."""
    names = view.schema.catalogue
    return validate.count(name, action, least=0) if names is None else names.check_one(name, action)


def one_or_more(view: View, actions: ActionId | Iterable[ActionId]) -> list[int]:
    """The rows of one id or of several."""
    one = isinstance(actions, str | int | np.integer) and not isinstance(actions, bool)
    return rows_of(view, "actions", [actions] if one else actions)


def name_of(view: View, row: int) -> ActionId:
    """The id of an action."""
    names = view.schema.catalogue
    return row if names is None else names[row]


def named(view: View, rows: Iterable[int]) -> list[ActionId]:
    """The ids of actions."""
    return [name_of(view, row) for row in rows]


def shown(view: View, record: DecisionRecord) -> DecisionRecord:
    """A record of the log with ids in the place of rows."""
    if view.schema.catalogue is None:
        return record
    question, details = record.question, dict(record.details)
    if question is not None:
        filters = {
            name: None if rows is None else named(view, rows)
            for name, rows in (("candidates", question.candidates), ("exclude", question.exclude))
        }
        question = replace(question, **filters)  # type: ignore[arg-type]
    if "baseline" in details:
        details["baseline"] = name_of(view, details["baseline"])
    if "shadows" in details:
        details["shadows"] = {
            arm: [None if would is None else name_of(view, would), chance]
            for arm, (would, chance) in details["shadows"].items()
        }
    return replace(record, question=question, actions=named(view, record.actions), details=details)  # type: ignore[arg-type]


def reward_shown(view: View, record: RewardRecord) -> RewardRecord:
    """A reward of the log with the action's id in the place of its row."""
    return record if view.schema.catalogue is None else replace(record, action=name_of(view, record.action))  # type: ignore[arg-type]


def check_actions_known(view: View, argument: str, retired: bool, rows: list[int]) -> None:
    """Refuse what is to be retired and is already, or reinstated and is not: by its id."""
    if view.schema.catalogue is None:
        return
    for row in rows:
        if (row in view.retired) is not retired:
            came = f"action {validate.describe(name_of(view, row))}"
            raise InvalidInput(
                argument, came, "actions that are retired" if retired else "actions that are not retired"
            )


__all__ = [
    "asked", "check_actions_known", "known_rows", "name_of", "named", "one_or_more", "reward_shown", "row_of", "rows_of", "shown",
]  # fmt: skip
