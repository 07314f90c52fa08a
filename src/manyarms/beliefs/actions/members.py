"""Which actions stand at places of an offer, for many contexts at once: members of units are drawn, uniformly and none twice."""

from __future__ import annotations

import numpy as np

from manyarms._base.typing import Ints
from manyarms.beliefs.actions.catalogue import Offer
from manyarms.beliefs.actions.sorted_integers import free

ROOM = 2  # members for each place, from which on places that met are simply drawn again


def actions_at(offer: Offer, places: Ints, rng: np.random.Generator) -> Ints:
    """(n, k) ids of the actions at these places (best_of_each.py) of n contexts."""
    ids = np.empty(places.shape, dtype=np.int64)
    played = places >= 0
    ids[played] = offer.ids_of_slots()[places[played]]
    if played.all():
        return ids
    rows, unit = np.nonzero(~played)[0], ~places[~played]
    ranks = _ranks(rows, unit, offer.counts[unit], rng, several=places.shape[1] > 1)
    found = np.empty(len(unit), dtype=np.int64)
    units = offer.catalogue.units
    if units.alone and not offer.listed:
        found[:] = units.represent[unit if offer.units is None else offer.units[unit]]
    else:
        order = np.argsort(unit, kind="stable")
        for some in np.split(order, np.flatnonzero(np.diff(unit[order])) + 1):
            found[some] = _members(offer, offer.unit_at(int(unit[some[0]])), ranks[some])
    ids[~played] = found
    return ids


def _ranks(rows: Ints, units: Ints, counts: Ints, rng: np.random.Generator, *, several: bool) -> Ints:
    """A rank below its count for each place, uniform, and different where context and unit are the same.

    Those that meet are drawn again until none do. Nothing in it depends on the ranks but whether they are equal, so that all
    lists of different ranks have the same chance. Where a unit has hardly more members than are asked for, they are shuffled.
    """
    ranks = rng.integers(counts)
    if not several:
        return ranks
    order = np.lexsort((units, rows))
    same = np.diff(rows[order], prepend=-1).astype(bool) | np.diff(units[order], prepend=-1).astype(bool)
    group = np.empty(len(rows), dtype=np.int64)
    group[order] = np.cumsum(same) - 1
    sizes = np.bincount(group)
    tight = ROOM * sizes[group] > counts
    for one in np.unique(group[tight & (sizes[group] > 1)]).tolist():
        where = np.flatnonzero(group == one)
        ranks[where] = rng.permutation(int(counts[where[0]]))[: len(where)]
    loose = np.flatnonzero(~tight & (sizes[group] > 1))
    while len(loose):
        order = loose[np.lexsort((ranks[loose], group[loose]))]
        met = (np.diff(group[order]) == 0) & (np.diff(ranks[order]) == 0)
        again = order[1:][met]
        if not len(again):
            break
        ranks[again] = rng.integers(counts[again])
    return ranks


def _members(offer: Offer, unit: int, ranks: Ints) -> Ints:
    """The actions at these ranks among the members of a unit that are offered."""
    if unit in offer.listed:
        return offer.listed[unit][ranks]
    return offer.catalogue.units.members(unit, free(offer.withheld.get(unit, ()), ranks))


__all__ = ["actions_at"]
