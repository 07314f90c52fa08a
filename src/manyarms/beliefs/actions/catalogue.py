"""Which actions exist, which have been played, and which may be chosen now.

Actions are the integers 0 .. K-1; new ones continue the count and no number is used twice. A played action has a
*slot*, its row in the leaves' tables, in order of first play; the others are only counted, by units.

Callers may have ids of their own for them (`names`). What they give is turned into the integers here, by whatever has `check`
in its name, `offer`, `offers` and `listed`; `named` is the way back. Everything else speaks integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from manyarms._base import linalg, validate
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.beliefs.actions.sorted_integers import skip
from manyarms.beliefs.actions.units import Units
from manyarms.beliefs.growable import GrowableArray
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.logs.actions import ActionId, Actions
from manyarms.logs.filters import Filter, filter_of, known_rows, rows_of


class Place(NamedTuple):
    """Where an action stands in an offer: among the played actions' scores, or among the units."""

    played: bool
    position: int


@dataclass
class Offer:
    """What may be chosen in one decision.

    slots: the played actions offered (None: all of them but `barred`). units: the units offered (None: all), with the
    number of members offered of each. Members of a unit stay interchangeable under any filter.
    """

    catalogue: ActionCatalogue
    slots: Ints | None
    barred: Ints
    units: Ints | None
    counts: Ints
    total: int
    withheld: dict[int, list[int]] = field(default_factory=dict)  # unit -> ranks that an `exclude` takes out
    listed: dict[int, Ints] = field(default_factory=dict)  # unit -> the candidates that belong to it

    @property
    def fresh(self) -> int:
        """How many unplayed actions are offered."""
        played = len(self.catalogue.played) - len(self.barred) if self.slots is None else len(self.slots)
        return self.total - played

    def ids_of_slots(self) -> Ints:
        """Ids of the played actions, in the order of the scores."""
        ids = cast(Ints, self.catalogue.played.rows)
        return ids if self.slots is None else ids[self.slots]

    def unit_at(self, place: int) -> int:
        """Unit at a place of `counts`."""
        return place if self.units is None else int(self.units[place])

    def member(self, place: int, rank: int) -> int:
        """The action at that rank (ascending ids) among the offered members of the unit at that place."""
        unit = self.unit_at(place)
        if unit in self.listed:
            return int(self.listed[unit][rank])
        return self.catalogue.units.member(unit, skip(self.withheld.get(unit, []), rank))

    def lowest(self, places: Ints, k: int) -> tuple[Ints, Ints]:
        """The up to k lowest ids of each of these units: (ids, the place that each came from)."""
        alone = self.counts[places] == 1
        ids, owners = [self._only_members(places[alone])], [places[alone]]
        for place in places[~alone].tolist():
            number = min(k, int(self.counts[place]))
            ids.append(np.array([self.member(place, rank) for rank in range(number)], dtype=np.int64))
            owners.append(np.full(number, place))
        return np.concatenate(ids), np.concatenate(owners)

    def _only_members(self, places: Ints) -> Ints:
        units = places if self.units is None else self.units[places]
        table = self.catalogue.units
        if table.alone and not self.listed:
            return table.represent[units]  # every unit is one action
        return np.array([self.member(place, 0) for place in places.tolist()], dtype=np.int64)

    def place_of(self, action: int) -> Place | None:
        """The place of an action, or of its unit where nobody has played it; None if it is not offered."""
        slot = self.catalogue.slot(action)
        if slot >= 0:
            if self.slots is None:
                return None if slot in self.barred else Place(True, slot)
            where = np.flatnonzero(self.slots == slot)
            return Place(True, int(where[0])) if len(where) else None
        unit = self.catalogue.units.unit_of(action)
        if self.units is not None:
            where = np.flatnonzero(self.units == unit)
            if not len(where) or action not in self.listed[unit]:
                return None
            return Place(False, int(where[0]))
        if action in self.catalogue.retired:
            return None
        rank = self.catalogue.units.rank(action, unit)
        return None if rank in self.withheld.get(unit, ()) else Place(False, unit)


class ActionCatalogue:
    """The actions of a belief."""

    def __init__(self, actions: int, features: Array | None, distinct: bool) -> None:
        self.size = validate.count("actions", actions)
        self.units = Units(self.size, features, distinct)
        self.played = GrowableArray((), np.int64)
        self.slot_of: dict[int, int] = {}
        self.retired: set[int] = set()
        self._gone = bytearray()  # by slot: 1 where it is retired
        self._barred: Ints | None = None  # the slots of retired actions; made anew where a decision asks after a change
        self.names: Actions | None = None  # what callers call them; None: by their numbers

    @property
    def distinct(self) -> bool:
        """Every action has a prior covariance of its own."""
        return self.units.distinct

    @property
    def alive(self) -> int:
        """Actions that are not retired."""
        return self.size - len(self.retired)

    @property
    def barred(self) -> Ints:
        """Slots of the played actions that are retired, ascending."""
        barred = self._barred
        if barred is None:
            barred = self._barred = np.flatnonzero(np.array(self._gone))
        return barred

    # ---- ids, from callers and to them --------------------------------------------------------------------------------

    def check_names(self, names: Actions) -> None:
        """Refuses ids of another number of actions."""
        if len(names) != self.size:
            raise InvalidInput("catalogue", f"{len(names):,} ids", f"{self.size:,}, one for each action")

    def named(self, rows: Ints) -> AnyArray:
        """What callers call these actions, in their shape."""
        return rows if self.names is None else self.names.named(rows)

    def named_one(self, row: int) -> ActionId:
        """What callers call an action."""
        return row if self.names is None else self.names[row]

    def _shown(self, row: int) -> str:
        return f"action {validate.describe(self.named_one(row))}"

    def check(self, name: str, ids: object, *, unique: bool, retired: bool = False) -> Ints:
        """Ids as an array; refuses what is unknown, retired (unless that is allowed), or given twice (where it must not be)."""
        return self.check_rows(name, rows_of(name, ids, self.names, self.size), unique=unique, retired=retired)

    def check_rows(self, name: str, rows: Ints, *, unique: bool, retired: bool = False) -> Ints:
        """The same of actions that are known."""
        if not retired and self.retired and not self.retired.isdisjoint(rows.tolist()):
            gone = next(a for a in rows.tolist() if a in self.retired)
            raise UnknownAction(name, f"{self._shown(gone)}, which is retired", "actions that are not retired")
        if unique and len(rows) > 1:
            ordered = np.sort(rows)
            twice = ordered[1:][ordered[1:] == ordered[:-1]]
            if twice.size:
                raise UnknownAction(name, f"{self._shown(int(twice[0]))} more than once", "every action at most once")
        return rows

    def check_retired(self, name: str, ids: npt.ArrayLike) -> Ints:
        """Ids of retired actions as an array, each at most once."""
        array = self.check(name, ids, unique=True, retired=True)
        if not self.retired.issuperset(array.tolist()):
            other = next(a for a in array.tolist() if a not in self.retired)
            raise UnknownAction(name, f"{self._shown(other)}, which is not retired", "actions that are retired")
        return array

    def check_one(self, name: str, action: object, *, retired: bool = False) -> int:
        """One id that exists and is not retired, unless that is allowed."""
        if self.names is not None:
            row = self.names.check_one(name, action)
        elif not isinstance(action, int | np.integer) or isinstance(action, bool):
            raise InvalidInput(name, validate.describe(action), "an integer, the id of an action")
        elif not 0 <= action < self.size:
            raise UnknownAction(name, f"action {validate.describe(action)}", f"an id from 0 to {self.size - 1}")
        else:
            row = int(action)
        if not retired and row in self.retired:
            raise UnknownAction(name, f"{self._shown(row)}, which is retired", "an action that is not retired")
        return row

    def check_new_ids(self, ids: Iterable[ActionId] | None, number: int) -> Actions | None:
        """The ids with so many new ones behind them, which come where the actions have ids, and only there."""
        if self.names is None:
            if ids is not None:
                raise InvalidInput("ids", validate.describe(ids), "nothing: actions without ids are numbered")
            return None
        if ids is None:
            raise InvalidInput("ids", "nothing", f"{number} ids for the new actions, as all the others have one")
        return self.names.longer(ids, number)

    def check_new(self, number: int, bytes_each: float) -> None:
        """Refuses more new actions than ids can count, or than there is memory for: at so many bytes each, and their ids."""
        validate.count("number", number, most=validate.MOST - self.size)
        validate.room("number", number, bytes_each + 8, "new actions")

    # ---- what happens to actions --------------------------------------------------------------------------------------

    def play(self, action: int) -> tuple[int, bool]:
        """Slot of an action that is being observed, and whether it is new."""
        slot = self.slot_of.get(action)
        if slot is not None:
            return slot, False
        slot = len(self.played)
        self.slot_of[action] = slot
        self.played.append(action)
        if action in self.retired:  # a late reward: it is learned, and the action is not offered again
            self._gone.append(1)
            self._barred = None
        else:  # one that is retired was taken then
            self._gone.append(0)
            self.units.take(action)
        return slot, True

    def play_all(self, ids: Ints) -> tuple[Ints, Ints]:
        """Slots of distinct actions that are being observed, and those among them that are new, in the order of their slots."""
        slots = self.slots(ids)
        new, first = ids[slots < 0], len(self.played)
        if self.retired.isdisjoint(new.tolist()):
            self.slot_of.update(zip(new.tolist(), range(first, first + len(new)), strict=True))
            self.played.extend(new)
            self._gone.extend(bytes(len(new)))
            self.units.take_all(new)
        else:
            for action in new.tolist():
                self.play(action)
        slots[slots < 0] = np.arange(first, first + len(new))
        return slots, new

    def release(self, slots: Ints) -> Ints:
        """Let these played actions count as never played; the slots that stay, ascending, which move up in this order."""
        gone = self.played.rows[slots]
        keep = np.delete(np.arange(len(self.played)), slots)
        self.played.keep(keep)
        self.slot_of = dict(zip(self.played.rows.tolist(), range(len(keep)), strict=True))
        self._gone = bytearray(np.frombuffer(bytes(self._gone), dtype=np.uint8)[keep].tobytes())
        self._barred = None
        for action in gone.tolist():
            if action not in self.retired:  # one that is retired stays away from the others
                self.units.give_back(action)
        return keep

    def add(self, number: int, features: Array | None, names: Actions | None = None) -> Ints:
        """New actions (their features are already in the table), with `names` of all of them; returns the new ones' rows."""
        ids = np.arange(self.size, self.size + number)
        self.size += number
        self.names = names
        self.units.add(number, features)
        return ids

    def regroup(self, features: Array) -> None:
        """Group the actions anew, whose features have changed: as if they had all come with these, and then been played."""
        in_blocks = self.units.in_blocks
        self.units = Units(self.size, features, self.distinct)
        gone = self.retired.union(self.slot_of)
        self.units.take_all(np.sort(np.fromiter(gone, np.int64, len(gone))))
        if in_blocks:  # here and now: the next decision need not wait for them
            self.units.blocks(features)

    def retire(self, ids: Ints) -> None:
        """Do not offer these any more; what they have taught stays."""
        self.retired.update(ids.tolist())
        self.units.take_all(self._bar(ids, 1))

    def reinstate(self, ids: Ints) -> None:
        """Offer these again, which were retired."""
        self.retired.difference_update(ids.tolist())
        for action in self._bar(ids, 0).tolist():
            self.units.give_back(action)

    def _bar(self, ids: Ints, gone: int) -> Ints:
        """Note of the played ones whether they are retired; the others."""
        slots, fresh = self._split(ids)
        for slot in slots.tolist():
            self._gone[slot] = gone
        if len(slots):
            self._barred = None
        return fresh

    def retired_ids(self) -> Ints:
        """The retired actions, ascending."""
        return np.sort(np.fromiter(self.retired, np.int64, len(self.retired)))

    # ---- what may be chosen -------------------------------------------------------------------------------------------

    def offer(self, candidates: Filter = None, exclude: Filter = None) -> Offer:
        """What may be chosen, checked; raises if nothing is left."""
        if candidates is None and exclude is None:
            offer = Offer(self, None, self.barred, None, self.units.counts, self.alive)
            self._refuse_empty(offer.total, None, None, "")
            return offer
        chosen = None if candidates is None else self.check("candidates", candidates, unique=True)
        return self._offer(chosen, None if exclude is None else self._excluded("exclude", exclude), "")

    def offers(self, candidates: Filter, exclude: Filter, contexts: int | None) -> list[Offer]:
        """What may be chosen in each of so many contexts (None: in one), which have filters of their own."""
        return [self._offer(*one) for one in self._filters(candidates, exclude, contexts)]

    def _filters(
        self, candidates: Filter, exclude: Filter, contexts: int | None
    ) -> Iterator[tuple[Ints | None, Ints | None, str]]:
        """Candidates, exclusions and where they stand, for all contexts or for each."""
        chosen = filter_of("candidates", candidates, self.names, self.size, contexts)
        barred = filter_of("exclude", exclude, self.names, self.size, contexts, unknown=True)
        each = next((len(rows) for rows in (chosen, barred) if isinstance(rows, list)), None)
        for i in range(each or 1):
            some, out = (rows[i] if isinstance(rows, list) else rows for rows in (chosen, barred))
            where = "" if each is None else f"[{i}]"
            if some is not None and (i == 0 or isinstance(chosen, list)):
                self.check_rows("candidates" + (where if isinstance(chosen, list) else ""), some, unique=True)
            yield some, None if out is None else self._not_retired(out), where

    def _offer(self, chosen: Ints | None, barred: Ints | None, where: str) -> Offer:
        if chosen is not None:
            offer = self._of_candidates(chosen if barred is None else chosen[~np.isin(chosen, barred)])
        elif barred is not None:
            offer = self._without(barred)
        else:
            offer = Offer(self, None, self.barred, None, self.units.counts, self.alive)
        self._refuse_empty(offer.total, chosen, barred, where)
        return offer

    def listed(
        self, candidates: npt.ArrayLike | None = None, exclude: npt.ArrayLike | None = None
    ) -> tuple[Ints, Ints, int]:
        """What may be chosen, one by one: ids, their places in `candidates`, and how many places there are.

        Without candidates every action of the catalogue has its id as its place, retired ones too, which are never offered.
        """
        chosen = None if candidates is None else self.check("candidates", candidates, unique=True)
        return self._listed(chosen, None if exclude is None else self._excluded("exclude", exclude), "")

    def lists(self, candidates: Filter, exclude: Filter, contexts: int | None) -> list[tuple[Ints, Ints, int]]:
        """`listed` for all contexts of a batch, or for each."""
        return [self._listed(*one) for one in self._filters(candidates, exclude, contexts)]

    def _listed(self, chosen: Ints | None, barred: Ints | None, where: str) -> tuple[Ints, Ints, int]:
        if chosen is not None:
            ids, keep = chosen, np.ones(len(chosen), dtype=bool)
        else:
            ids, keep = np.arange(self.size), np.ones(self.size, dtype=bool)
            keep[self.retired_ids()] = False
        if barred is not None:
            keep &= ~np.isin(ids, barred)
        rows = np.flatnonzero(keep)
        self._refuse_empty(len(rows), chosen, barred, where)
        return ids[rows], rows, len(ids)

    def _refuse_empty(self, total: int, chosen: Ints | None, barred: Ints | None, where: str) -> None:
        """An error, of what was given, if nothing is left to choose from."""
        if total:
            return
        if chosen is not None:
            least = "at least one action that is neither retired nor excluded"
            raise InvalidInput("candidates" + where, "an empty set", least)
        if barred is not None and self.alive:
            came = f"all {self.alive} that are not retired"
            raise InvalidInput("exclude" + where, came, "ids that leave at least one action")
        raise InvalidInput("actions", f"none of {self.size}", "at least one that is not retired")

    def _excluded(self, name: str, exclude: Filter) -> Ints:
        """Ids to leave out; one that is unknown or retired already, or comes twice, does no harm."""
        return self._not_retired(known_rows(name, exclude, self.names, self.size))

    def _not_retired(self, rows: Ints) -> Ints:
        """Rows, ascending and each once, without those that are retired."""
        array = np.unique(rows)
        if self.retired and not self.retired.isdisjoint(array.tolist()):
            array = np.array([a for a in array.tolist() if a not in self.retired], dtype=np.int64)
        return array

    def slot(self, action: int) -> int:
        """The slot of an action, -1 where nobody has played it."""
        return self.slot_of.get(action, -1)

    def slots(self, ids: Ints) -> Ints:
        """The slot of each action, -1 where nobody has played it."""
        return np.fromiter(map(self.slot_of.get, ids.tolist(), repeat(-1)), np.int64, len(ids))

    def _split(self, ids: Ints) -> tuple[Ints, Ints]:
        """Slots of the played ones, and the ids of the others."""
        slots = self.slots(ids)
        return slots[slots >= 0], ids[slots < 0]

    def _of_candidates(self, ids: Ints) -> Offer:
        slots, fresh = self._split(ids)
        fresh = np.sort(fresh)
        units = self.units.unit(fresh)
        order = np.argsort(units, kind="stable")
        labels = units[order]
        starts = linalg.first_rows(labels) if len(labels) else np.empty(0, dtype=np.int64)
        groups = np.split(fresh[order], starts[1:]) if len(labels) else []
        kinds = labels[starts]
        counts = np.diff(np.append(starts, len(labels)))
        listed = dict(zip(kinds.tolist(), groups, strict=True))
        none = np.empty(0, dtype=np.int64)
        return Offer(self, slots, none, kinds, counts, len(ids), listed=listed)

    def _without(self, ids: Ints) -> Offer:
        slots, fresh = self._split(ids)
        barred = np.union1d(self.barred, slots)
        counts, withheld = self.units.counts, dict[int, list[int]]()
        if len(fresh):
            counts = counts.copy()
            units = self.units.unit(fresh)
            np.subtract.at(counts, units, 1)
            for action, unit in zip(fresh.tolist(), units.tolist(), strict=True):
                withheld.setdefault(unit, []).append(self.units.rank(action, unit))
            for ranks in withheld.values():
                ranks.sort()
        return Offer(self, None, barred, None, counts, self.alive - len(ids), withheld=withheld)
