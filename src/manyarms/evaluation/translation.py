"""From the words of a policy or an agent to those of a log: the same ids in another order, contexts of another encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import UnknownAction
from manyarms.logs.actions import Actions
from manyarms.logs.data import LoggedData, LogSource
from manyarms.logs.original import original_columns
from manyarms.policies.base import Policy
from manyarms.policies.row_policy import Renumbered

SHOWN = 5  # missing ids that are named


@dataclass(frozen=True)
class Translation:
    """places: the row over there of each of the log's actions; encoder: over there, where it is not the log's. None: the same."""

    places: Ints | None = None
    encoder: Any = None

    def renumbered(self, policy: Policy) -> Policy:
        """The policy over the log's actions."""
        return policy if self.places is None else Renumbered(policy, self.places)

    def contexts(self, part: LoggedData) -> Array:
        """The contexts of a chunk as they are over there."""
        if self.encoder is None:
            return part.contexts
        table = original_columns(part, "the policy's own encoder")
        return validate.as_floats("contexts", self.encoder.apply(table))


def translation_for(thing: object, log: LogSource, argument: str) -> Translation:
    """How what a policy or an agent calls its actions and contexts lies to the log's own."""
    schema = getattr(thing, "schema", None)
    theirs, encoder = getattr(schema, "catalogue", None), getattr(schema, "encoder", None)
    ours, own = getattr(log, "catalogue", None), getattr(log, "encoder", None)
    places = None
    if isinstance(theirs, Actions) and isinstance(ours, Actions) and theirs is not ours and theirs != ours:
        places = _places(theirs, ours, argument)
    if encoder is None or own is None or encoder is own or _same(encoder, own):
        encoder = None
    return Translation(places, encoder)


def _places(theirs: Actions, ours: Actions, argument: str) -> Ints:
    """The row over there of each of the log's actions."""
    places = theirs.find_all(ours)
    if (places < 0).any():
        missing = ours.ids(np.flatnonzero(places < 0)[:SHOWN])
        came = f"no probability for {_listed(missing, int((places < 0).sum()))} of the log"
        raise UnknownAction(argument, came, "a policy over the log's ids")
    if len(theirs) > len(ours):
        unknown = np.setdiff1d(np.arange(len(theirs)), places)
        came = f"actions that the log does not know: {_listed(theirs.ids(unknown[:SHOWN]), len(unknown))}"
        expected = "a log over all of the policy's ids: open it with catalogue=policy.schema.catalogue"
        raise UnknownAction(argument, came, expected)
    return places


def _listed(ids: list[Any], count: int) -> str:
    return ", ".join(map(repr, ids)) + (f" and {count - len(ids):,} more" if count > len(ids) else "")


def _same(one: Any, other: Any) -> bool:
    """Whether two encoders do the same."""
    if type(one) is not type(other):
        return False
    (spec, arrays), (spec2, arrays2) = one.state(), other.state()
    same: bool = spec == spec2 and arrays.keys() == arrays2.keys()
    return same and all(_equal(arrays[name], arrays2[name]) for name in arrays)


def _equal(one: AnyArray, other: AnyArray) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


__all__ = ["Translation", "translation_for"]
