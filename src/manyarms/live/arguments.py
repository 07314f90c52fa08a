"""What callers give to a live store, checked: questions, ids, names."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyarms._base import validate
from manyarms.errors import InvalidInput
from manyarms.live.records import MOST_OF_AN_ID, Question


def a_question(x: Any, candidates: Any, exclude: Any, k: Any, action_contexts: Any) -> Question:
    given, name = (x, "x") if action_contexts is None else (action_contexts, "action_contexts")
    if given is None:
        raise InvalidInput("x", "None", "a context, or `action_contexts`")
    numbers = validate.as_floats(name, given)
    if numbers.ndim != (1 if name == "x" else 2):
        expected = "one context, (d,)" if name == "x" else "a context for each action, (m, d)"
        raise InvalidInput(name, f"shape {numbers.shape}", expected)
    return Question(
        np.ascontiguousarray(numbers, dtype="<f8").copy(),
        None if candidates is None else action_ids("candidates", candidates),
        None if exclude is None else action_ids("exclude", exclude),
        None if k is None else validate.count("k", k),
    )


def action_ids(name: str, values: Any) -> list[int]:
    found: list[int] = validate.integers(name, values, 1, "a list of integers, ids of actions").tolist()
    if found and min(found) < 0:
        raise InvalidInput(name, min(found), "ids of actions, from 0")
    return found


def a_name(argument: str, value: object, empty: bool = False) -> str:
    """An id or a name: text that is not too long."""
    if not isinstance(value, str) or len(value) > MOST_OF_AN_ID or not (value or empty) or "\0" in value:
        raise InvalidInput(argument, validate.describe(value), f"a text of 1 to {MOST_OF_AN_ID} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(argument, validate.describe(value), "text that can be written as UTF-8") from None
    return value


__all__ = ["a_name", "a_question", "action_ids"]
