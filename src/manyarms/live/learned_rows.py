"""Which rows a chunk teaches.

The reward of (decision, action) at a position of the log is what its rewards up to there make together; without any it is the
default, once the decision is due; else there is none. As long as the decision is not active there is none either. What a range
of positions teaches is how these rewards differ between its ends: from none to r, a row to be learned; from r to another, a row
whose reward is replaced. How rewards make one, the default and the waiting time are those that were agreed when it was decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from manyarms._base.typing import Array
from manyarms.live import log
from manyarms.live.activations import activated_between
from manyarms.live.records import DecisionRecord, RewardRecord
from manyarms.live.settings import Settings, SettingsInTime
from manyarms.live.stores.database import Reader


@dataclass(frozen=True, slots=True)
class TaughtRow:
    """The reward of an action of a decision is `now`; it was `was`, None where there was none."""

    decision: DecisionRecord
    action: int
    was: float | None
    now: float

    @property
    def context(self) -> Array | None:
        """In which the action was taken; None where the question has none for it."""
        asked = self.decision.question
        return None if asked is None else asked.context_of(self.action)


@dataclass(frozen=True, slots=True)
class SettledEvent:
    """A decision whose waiting time is over, and the reward of its first action by then; None: there is none."""

    decision: DecisionRecord
    reward: float | None
    given: bool  # a reward came, rather than the default


def of_rewards(reader: Reader, agreed: SettingsInTime, after: int, upto: int, due: int) -> list[TaughtRow]:
    """What rewards and activations with positions in (after, upto] teach; decisions up to `due` have their default already."""
    came = log.rewards_between(reader, after, upto)
    activated = set(activated_between(reader, after, upto))
    if not came and not activated:
        return []
    positions = [*(reward.decision for reward in came), *activated]
    decisions = log.decisions_at(reader, positions)
    rewards = log.rewards_of(reader, positions, upto)
    changed = [(reward.decision, reward.action) for reward in came]
    changed += sorted(pair for pair in rewards if pair[0] in activated)
    taught: list[TaughtRow] = []
    for pair in dict.fromkeys(changed):
        decision = decisions.get(pair[0])
        if decision is None or decision.erased or not decision.active_at(upto):
            continue
        settings = agreed.of(decision.position)
        was = None
        if decision.active_at(after):
            default = settings.default if decision.position <= due else None
            was = _combined(settings, [r for r in rewards[pair] if r.position <= after], default)
        now = _combined(settings, rewards[pair], None)
        assert now is not None
        if was != now:
            taught.append(TaughtRow(decision, pair[1], was, now))
    return taught


def of_due(
    reader: Reader, agreed: SettingsInTime, after: int, upto: int, position: int
) -> tuple[list[TaughtRow], list[SettledEvent]]:
    """Decisions in (after, upto] have waited long enough: the defaults that this teaches, and the events settled by it.

    position: what has been folded; rewards up to there have been taught. What is not active by then was never shown: it has no
    default, and is no event.
    """
    waited = log.decisions_between(reader, after, upto)
    decisions = [decision for decision in waited if not decision.erased and decision.active_at(position)]
    rewards = log.rewards_of(reader, [decision.position for decision in decisions], position)
    taught: list[TaughtRow] = []
    settled: list[SettledEvent] = []
    for decision in decisions:
        settings = agreed.of(decision.position)
        for place, action in enumerate(decision.actions):
            came = rewards.get((decision.position, action), [])
            if not came and settings.default is not None:
                taught.append(TaughtRow(decision, action, None, settings.default))
            if place == 0:
                settled.append(SettledEvent(decision, _combined(settings, came, settings.default), bool(came)))
    return taught, settled


def _combined(settings: Settings, rewards: Sequence[RewardRecord], otherwise: float | None) -> float | None:
    return settings.combined([reward.value for reward in rewards]) if rewards else otherwise


__all__ = ["SettledEvent", "TaughtRow", "of_due", "of_rewards"]
