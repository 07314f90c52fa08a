"""Arguments of calls as JSON: numbers of NumPy, arrays and sets become plain values; what JSON cannot say is refused here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TypedDict, cast
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.typing import JSON, ActionContexts, Row
from manyarms.errors import InvalidInput

ActionId = str | int
"""What an action is called: a non-empty string, or an integer of 64 bits."""

Actions = Iterable[ActionId] | npt.NDArray[np.integer]
"""Ids of actions."""

Context = npt.ArrayLike | Row | Mapping[str, npt.ArrayLike]
"""One context: numbers, or, where the service has an encoder, a mapping from columns to values or vectors."""

MOST_OF_AN_ID = 256  # characters


class DecideArguments(TypedDict, total=False):
    """One of many questions, with the arguments of `decide` by their names."""

    context: Context | None
    action_contexts: ActionContexts | None
    candidates: Actions | None
    exclude: Actions | None
    k: int | None
    unit: str | None
    id: str | None
    baseline: ActionId | None
    propensity: bool
    deferred: bool


class RewardArguments(TypedDict, total=False):
    """One of many rewards, with the arguments of `reward` by their names."""

    event: str
    value: float
    action: ActionId | None
    id: str


def given(**arguments: JSON) -> dict[str, JSON]:
    """Those that were given: None says nothing."""
    return {name: value for name, value in arguments.items() if value is not None}


def a_name(argument: str, value: object, *, empty: bool = False) -> str:
    """An id or a name: text that is not too long."""
    if not isinstance(value, str) or len(value) > MOST_OF_AN_ID or not (value or empty) or "\0" in value:
        raise InvalidInput(argument, validate.describe(value), f"a text of 1 to {MOST_OF_AN_ID} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(argument, validate.describe(value), "text that can be written as UTF-8") from None
    return value


def an_action(argument: str, value: object) -> ActionId:
    """The id of an action."""
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise InvalidInput(argument, validate.describe(value), "the id of an action: a string or an integer of 64 bits")
    return value


def actions(argument: str, values: Actions | ActionId) -> list[JSON]:
    """Ids of actions; a set in a settled order, so that the same question is the same text."""
    if isinstance(values, str | int | np.integer):
        return [an_action(argument, values)]
    if isinstance(values, np.ndarray):
        return [int(one) for one in validate.integers(argument, values)]
    if not isinstance(values, Iterable) or isinstance(values, Mapping | bytes):
        raise InvalidInput(argument, validate.describe(values), "a list of ids of actions")
    found = [an_action(argument, one) for one in values]
    ordered = (
        sorted(found, key=lambda one: (isinstance(one, str), one)) if isinstance(values, set | frozenset) else found
    )
    return list(ordered)


def numbers(argument: str, values: npt.ArrayLike | ActionContexts, axes: tuple[int, ...]) -> JSON:
    """Finite numbers with as many axes."""
    found = validate.as_floats(argument, cast("npt.ArrayLike", values))
    if found.ndim not in axes:
        wanted = " or ".join(f"{one} {'axis' if one == 1 else 'axes'}" for one in axes)
        raise InvalidInput(argument, f"shape {found.shape}", f"an array of numbers with {wanted}")
    plain: JSON = found.tolist()
    return plain


def a_context(value: Context) -> JSON:
    """One context."""
    if isinstance(value, Mapping):
        return {_column(name): _cell(str(name), one) for name, one in value.items()}
    return numbers("context", value, (1,))


def _column(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidInput("context", validate.describe(name), "names of columns that are texts")
    return name


def _cell(name: str, value: object) -> JSON:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        validate.number(f"context[{name!r}]", value)
        return int(value)
    if isinstance(value, list | tuple | np.ndarray):
        return numbers(f"context[{name!r}]", value, (1,))
    return validate.number(f"context[{name!r}]", value)


def shares_of(value: Mapping[str, float] | str) -> JSON:
    """The part of the traffic that each arm gets; or the name of one arm that gets all of it."""
    if isinstance(value, str):
        return {value: 1.0}
    validate.instance("shares", value, Mapping, "a dictionary {name of an arm: its share}")
    return {a_name("shares", name): validate.number(f"shares[{name!r}]", share) for name, share in value.items()}


def within(text: str | int) -> str:
    """One part of a path; not even `..` leads out of it."""
    quoted = quote(str(text), safe="")
    return quoted.replace(".", "%2E") if quoted.strip(".") == "" else quoted


def encoded(body: JSON) -> bytes:
    """The body of a request."""
    try:
        return json.dumps(body, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput("request", "a text with half a character", "text that can be written as UTF-8") from None


__all__ = [
    "ActionId",
    "Actions",
    "Context",
    "DecideArguments",
    "RewardArguments",
    "a_context",
    "a_name",
    "actions",
    "an_action",
    "encoded",
    "given",
    "numbers",
    "shares_of",
    "within",
]
