"""Which rounds of a log go where: at random by row or by group, or the past and the future.

by row      at random, as near to the fraction as it goes
by group    whole groups at random, as many as come nearest to the fraction
by time     the first rounds in time; rounds of one moment stay together, and the cut is the one nearest to the fraction
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from manyarms._base import validate
from manyarms._base.text import counted
from manyarms._base.typing import AnyArray, Bools, Ints
from manyarms.errors import InvalidInput

if TYPE_CHECKING:
    from manyarms.logs.data import LoggedData

SplitBy = Literal["row", "group", "time"]


def split(
    log: LoggedData, fraction: float, seed: int | np.random.Generator | None, by: SplitBy | None
) -> tuple[Bools, tuple[str, ...]]:
    """The rounds of the first part, as a mask, and what is to be said of it."""
    fraction = validate.probability("fraction", fraction)
    rng = validate.seeded(seed)
    if by is not None:
        validate.one_of("by", by, ("row", "group", "time"))
    by = ("row" if log.groups is None else "group") if by is None else by
    notes: tuple[str, ...] = ()
    if by == "time":
        log.require("timestamps", purpose='a split by="time"')
        assert log.timestamps is not None
        chosen, what = _earliest(log.timestamps, fraction), "moments"
        units = len(np.unique(log.timestamps))
        notes = _of_time(log, chosen) if chosen.any() and not chosen.all() else ()
    elif by == "group":
        log.require("groups", purpose='a split by="group"')
        _, member, sizes = np.unique(np.asarray(log.groups), return_inverse=True, return_counts=True)
        chosen, what, units = _whole_groups(member, sizes, fraction, rng), "groups", len(sizes)
    else:
        chosen, what, units = np.zeros(len(log), dtype=np.bool_), "rounds", len(log)
        chosen[rng.permutation(len(log))[: round(fraction * len(log))]] = True
        if log.groups is not None and (torn := _on_both_sides(log.groups, chosen)):
            notes = (f"split by row: {counted(torn, 'group')} lie on both sides, which are then not independent",)
    if chosen.all() or not chosen.any():
        expected = "a fraction that leaves rows on both sides"
        raise InvalidInput("fraction", f"{fraction:g} of {units} {what}", expected)
    return chosen, notes


def _whole_groups(member: Ints, sizes: Ints, fraction: float, rng: np.random.Generator) -> Bools:
    order = rng.permutation(len(sizes))
    reached = np.concatenate([[0], np.cumsum(sizes[order])])
    taken = int(np.argmin(np.abs(reached - fraction * len(member))))
    chosen = np.zeros(len(sizes), dtype=np.bool_)
    chosen[order[:taken]] = True
    found: Bools = chosen[member]
    return found


def _earliest(times: AnyArray, fraction: float) -> Bools:
    missing = np.isnat(times)
    if missing.any():
        came = f"{counted(int(missing.sum()), 'round')} without a time, the first at row {int(np.argmax(missing))}"
        raise InvalidInput("timestamps", came, 'a time in every round, for a split by="time"')
    ends, counts = np.unique(times, return_counts=True)
    reached = np.concatenate([[0], np.cumsum(counts)])
    taken = int(np.argmin(np.abs(reached - fraction * len(times))))
    return np.zeros(len(times), dtype=np.bool_) if taken == 0 else times <= ends[taken - 1]


def _of_time(log: LoggedData, chosen: Bools) -> tuple[str, ...]:
    assert log.timestamps is not None
    last, first = log.timestamps[chosen].max(), log.timestamps[~chosen].min()
    said = f"split by time: {chosen.mean():.1%} of the rounds, up to {last}, and the others, from {first} on"
    if log.groups is not None and (torn := _on_both_sides(log.groups, chosen)):
        lie = "lies" if torn == 1 else "lie"
        said += f"; {counted(torn, 'group')} {lie} on both sides, so that the two parts are not independent"
    return (said,)


def _on_both_sides(groups: AnyArray, chosen: Bools) -> int:
    return len(np.intersect1d(groups[chosen], groups[~chosen]))


__all__ = ["SplitBy", "split"]
