"""A settled event as the monitors see it: its reward as a number in [0, 1], and which of its chances may be relied on.

**Which propensity.** A weight has the mean 1 only if its denominator is the chance that the action had given all that was fixed
before the draw. Without a unit the arm is drawn anew for every event, and the shares belong into that chance. With a unit the arm
was drawn once, when the unit first came; from then on only the draw within the arm is new, and the chance is that given the arm.

**Which events.** A unit that is decided for twice in one version gets the same random numbers twice: the second time nothing is
drawn, and no weight has a known mean. Only the first event of a unit in a version is *fresh*. Its arm is drawn only with its very
first event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from manyarms.live.learned_rows import SettledEvent
from manyarms.live.records import DecisionRecord
from manyarms.live.settings import Settings

LEAST_CHANCE = 1e-50  # squares of one over it are summed


@dataclass(frozen=True, slots=True)
class Watched:
    """A settled event.

    reward: between 0 and 1; None where there is none, or rewards cannot be compared (`unusable`). fresh: its action was drawn
    anew; routed: its arm was. chance: of its action, that weights are made with; treated: the same given that it is not held out;
    within: given the arm; None where they are not known exactly, and then `missing` says why. edge: it was decided elsewhere, by
    a bundle of the arm: nobody routed it, and those who are decided for there may be others.
    """

    version: int
    arm: str
    action: int
    held_out: bool
    reward: float | None
    fresh: bool
    routed: bool
    chance: float | None
    treated: float | None
    within: float | None
    missing: str | None
    greedy: bool | None
    shadows: Mapping[str, Any]
    edge: bool = False


def unusable(settings: Settings) -> str | None:
    """Why rewards of this store cannot be made intervals of; None where they can."""
    if settings.reward_range is None:
        return "the store has no reward_range: an interval for a mean needs to know how large a reward can be"
    if settings.default is None:
        return "the store has no default reward: events without a reward would be left out, which biases every mean"
    return None


def watched(event: SettledEvent, settings: Settings) -> Watched:
    """An event as monitors see it; settings: by which it counts."""
    decision, details = event.decision, event.decision.details
    usable = unusable(settings) is None
    missing = _missing(decision)
    chance = treated = within = None
    if missing is None:
        within = min(1.0, decision.arm_propensity or 0.0)
        chance = within if decision.unit is not None else min(1.0, decision.propensity or 0.0)
        treated = within if decision.unit is not None else min(1.0, details.get("treated", chance))
        treated = treated if treated >= LEAST_CHANCE else None
    repeated = details.get("repeated")
    return Watched(
        version=decision.version,
        arm=decision.arm,
        action=decision.actions[0],
        held_out=details.get("held_out", False),
        reward=settings.scaled(event.reward) if usable and event.reward is not None else None,
        fresh=repeated != "draw",
        routed=repeated is None and "edge" not in details,
        chance=chance,
        treated=treated,
        within=within,
        missing=missing,
        greedy=details.get("greedy"),
        shadows=details.get("shadows", {}),
        edge="edge" in details,
    )


def _missing(decision: DecisionRecord) -> str | None:
    """Why there is no exact chance of the action."""
    if decision.propensity_kind == "estimated":
        return "estimated"
    known = (
        decision.propensity_kind == "exact" and decision.propensity is not None and decision.arm_propensity is not None
    )
    if not known or min(decision.propensity or 0.0, decision.arm_propensity or 0.0) < LEAST_CHANCE:
        return "no_propensity"
    return None


__all__ = ["Watched", "unusable", "watched"]
