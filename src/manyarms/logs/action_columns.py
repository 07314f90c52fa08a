"""The action column of a table: rows 0 .. K-1 of a catalogue, or ids.

Texts are ids. Integers are rows, unless there is a catalogue, or unless they can hardly be rows: one of them is in size beyond
both 1,000,000 and 100 times the number of rounds. They are then ids, as with catalogue="build", and a note says so;
action_count= insists that they are rows. A small negative number is refused: it may be an id, or a -1 for nothing at all.

Ids of a column of numbers are integers, as long as all of them are whole and written as such: 01234 in a CSV file is a text, and
so are then all the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

import numpy as np

from manyarms._base.typing import AnyArray, Ints
from manyarms._base.validate import MOST, describe
from manyarms.errors import InvalidInput
from manyarms.logs.actions import ActionId, Actions

MOST_ROWS = 1_000_000  # as the largest action: any log may have that many actions
MOST_TIMES = 100  # the rounds: of more actions than that most were never played
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


class HasActions(Protocol):
    """Something with a catalogue of ids, such as `manyarms.Catalogue`."""

    @property
    def actions(self) -> Actions: ...


CatalogueOption = Actions | HasActions | Sequence[ActionId] | Literal["build"] | None
"""What a log takes as its catalogue."""


def as_catalogue(given: CatalogueOption | AnyArray) -> Actions | Literal["build"] | None:
    """The ids that were given; "build" to find them in the log, None where nothing was said."""
    if given is None or isinstance(given, Actions):
        return given
    if isinstance(given, str) and given == "build":
        return "build"
    if isinstance(known := getattr(given, "actions", None), Actions) and not isinstance(given, type):
        return known
    if isinstance(given, np.ndarray) and given.ndim == 1:
        given = given.tolist()
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | dict | np.ndarray):
        expected = 'Actions, a list of ids, a Catalogue, "build" to find them in the log, or None'
        raise InvalidInput("catalogue", describe(given), expected)
    return Actions(given)


def are_ids(smallest: int, largest: int, rounds: int) -> bool:
    """Whether integers can hardly be rows of a catalogue."""
    return max(largest, -smallest) > max(MOST_ROWS, MOST_TIMES * rounds)


def ids_note(column: str, smallest: int, largest: int, rounds: int) -> str:
    """What is said where integers were taken as ids."""
    farthest = largest if largest >= -smallest else smallest
    return (
        f"the integers in {column!r} are taken as ids of actions and not as rows 0 .. K-1, since they reach {farthest:,} in "
        f"{rounds:,} rounds (action_count= says that they are rows)"
    )


def built(ids: Iterable[str], *, numbers: bool) -> Actions:
    """A catalogue of ids in their order; of integers, where they are those of a column of numbers."""
    found = list(ids)
    whole = numbers and all(is_integer(text) for text in found)
    return Actions(int(text) for text in found) if whole else Actions(found)


def is_integer(text: ActionId) -> bool:
    """Whether a text is an integer as Python writes it."""
    return isinstance(text, int) or (INTEGER.fullmatch(text) is not None and abs(int(text)) <= MOST)


def found_in(catalogue: Actions, ids: Sequence[ActionId]) -> Ints:
    """The rows of ids as a table has them, -1 where there is none; numbers and texts that write them are the same."""
    if catalogue.numbered:
        return catalogue.find_all([int(one) if is_integer(one) else one for one in ids])
    return catalogue.find_all([str(one) for one in ids])


__all__ = ["CatalogueOption", "HasActions", "are_ids", "as_catalogue", "built", "found_in", "ids_note", "is_integer"]
