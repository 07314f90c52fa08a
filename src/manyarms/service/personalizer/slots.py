"""Several slots of one event: which actions each may take so that none is left empty, and what their events are called."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

from manyarms.live import Live
from manyarms.service.personalizer.bodies import Slot

REMEMBERED = 10_000  # events
SHORT = 120  # characters of an event's or a slot's id that are kept as they are


class Filling:
    """Slots that are filled one after the other, each action in one of them at most.

    An action is offered to a slot only if the slots behind it can then all be filled. The baselines are one way to fill them all,
    so that each slot always has something to offer.
    """

    def __init__(self, slots: Sequence[Slot], actions: Sequence[str]) -> None:
        self._open = [frozenset(actions) - slot.excluded for slot in slots]
        self._actions = list(actions)
        self._plan = {slot.baseline: place for place, slot in enumerate(slots)}  # one way to fill what is left
        self._taken: set[str] = set()
        self._next = 0

    def offered(self) -> list[str]:
        """What the next slot may take, in the order of the actions."""
        return [name for name in self._actions if name in self._open[self._next] and self._without(name) is not None]

    def take(self, name: str) -> None:
        """The next slot takes this one."""
        plan = self._without(name)
        assert plan is not None
        self._plan = plan
        self._taken.add(name)
        self._next += 1

    def _without(self, name: str) -> dict[str, int] | None:
        """A way to fill the slots behind the next one without this action; None where there is none."""
        if name in self._taken:
            return None
        plan = {action: place for action, place in self._plan.items() if place > self._next}
        place = plan.pop(name, None)
        if place is None or self._moved(place, plan, {name}):
            return plan
        return None

    def _moved(self, place: int, plan: dict[str, int], seen: set[str]) -> bool:
        """Find another action for a slot, if need be by moving others (an augmenting path)."""
        for action in self._actions:
            if action in seen or action in self._taken or action not in self._open[place]:
                continue
            seen.add(action)
            other = plan.get(action)
            if other is None or self._moved(other, plan, seen):
                plan[action] = place
                return True
        return False


def slot_event(event: str, slot: str) -> str:
    """The event of one slot."""
    return f"{_prefix(event)}{_short(slot)}"


class SlotEvents:
    """Which events belong to the slots of one id: remembered here, or looked for among those that still wait."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._recent: OrderedDict[str, list[str]] = OrderedDict()

    def remember(self, event: str, slots: Sequence[Slot]) -> None:
        """All slots of an event are decided."""
        self._recent[event] = [slot_event(event, slot.id) for slot in slots]
        if len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)

    def of(self, event: str) -> list[str]:
        """The events of its slots, none where they are not known, or have waited too long."""
        if event in self._recent:
            return self._recent[event]
        prefix = _prefix(event)
        [(at,)] = self._live.database.read("SELECT at FROM counter")
        like = "".join(f"!{one}" if one in "!%_" else one for one in prefix) + "%"
        sql = "SELECT id FROM decisions WHERE at >= ? AND id LIKE ? ESCAPE '!'"
        found = self._live.database.read(sql, (at - self._live.settings.wait, like))
        return sorted(name for (name,) in found if name.startswith(prefix))  # LIKE may not tell upper from lower case


def _prefix(event: str) -> str:
    return f"{_short(event)}/"


def _short(name: str) -> str:
    """An id without a slash, and of limited length; different ids stay different."""
    plain = name.replace("%", "%25").replace("/", "%2F")
    if len(plain) <= SHORT:
        return plain
    return "%~" + hashlib.blake2b(name.encode(), digest_size=24).hexdigest()


__all__ = ["Filling", "SlotEvents", "slot_event"]
