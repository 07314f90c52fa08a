"""A policy as an arm: it was learned elsewhere, stays as it is, and leaves out what it may not choose."""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base.explanation import Explanation
from manyarms._base.typing import Array, Ints
from manyarms.agents.decisions import Propensity
from manyarms.agents.draws import NumberedDraws
from manyarms.errors import InvalidInput
from manyarms.live.arms import Arm, ArmView
from manyarms.live.records import Question
from manyarms.policies import Policy, StreamedPolicy
from manyarms.policies.in_context import in_context

RARE = 0.01  # where filters leave less of a policy than this, what is left is listed rather than waited for


@dataclass(frozen=True)
class PolicyView(ArmView):
    """A policy, the key of its draws, and the actions that are retired."""

    policy: Policy
    draws: NumberedDraws
    retired: frozenset[int]
    exact: bool = True

    def check(self, asked: Question) -> None:
        if asked.k not in (None, 1):
            raise InvalidInput("k", asked.k, "1: a policy chooses one action")
        if asked.per_action:
            raise InvalidInput("action_contexts", "contexts for each action", "one context: a policy decides here")

    def decide(self, asked: Question, draw: int) -> list[int]:
        return [self._drawn(self._offered(asked), draw)]

    def decide_with_propensity(
        self, asked: Question, draw: int, of: int | None = None
    ) -> tuple[list[int], Propensity | None]:
        offered = self._offered(asked)
        found = self._drawn(offered, draw)
        return [found], offered.propensity(found if of is None else of)

    def propensity(self, asked: Question, action: int, draw: int, draws: int | None = None) -> Propensity:
        return self._offered(asked).propensity(action)

    def greedy(self, asked: Question) -> int | None:
        return None

    def chances(self, asked: Question) -> Array:
        """How likely each of the candidates is, in their order."""
        offered = self._offered(asked)
        return np.array([offered.propensity(row).value for row in asked.candidates or ()])

    def explain(self, asked: Question, action: int) -> Explanation:
        if not isinstance(self.policy, StreamedPolicy):
            raise InvalidInput("policy", type(self.policy).__name__, "a policy of this package")
        return self.policy.explain(asked.context, action)

    def favourite(self, asked: Question) -> int | None:
        if not isinstance(self.policy, StreamedPolicy):
            return None
        known = None if asked.candidates is None else [a for a in asked.candidates if a < self.policy.action_count]
        barred = sorted(self.retired.union(asked.exclude or ()))
        return int(self.policy.decide(asked.context, candidates=known, exclude=barred))

    def _drawn(self, offered: _Offered, draw: int) -> int:
        stream = self.draws.decision(draw)
        try:
            return offered.draw(stream.generator)
        finally:
            self.draws.release(stream)

    def can_do_without(self, asked: Question, barred: set[int]) -> bool:
        if asked.candidates is not None:
            return not barred.issuperset(asked.candidates)
        return _Asked(self.policy, asked).mass(self.retired | barred) < 1.0 - RARE

    def _offered(self, asked: Question) -> _Offered:
        """What may be chosen; chances are in proportion to the policy's, or equal where it would take nothing of it."""
        self.check(asked)
        policy = _Asked(self.policy, asked)
        barred = self.retired if asked.exclude is None else self.retired | set(asked.exclude)
        if asked.candidates is not None:
            listed = asked.candidates
            if len(set(listed)) < len(listed):
                raise InvalidInput("candidates", "an action more than once", "every action at most once")
        else:
            left_out = policy.mass(barred) if barred else 0.0
            if left_out <= 1.0 - RARE:
                return _Offered(policy, barred, left_out)
            listed = list(range(self.policy.action_count))
        ids = np.array([a for a in listed if a not in barred], dtype=np.int64)
        if not len(ids):
            name = "exclude" if asked.candidates is None else "candidates"
            raise InvalidInput(name, "nothing left to choose from", "at least one action, neither retired nor excluded")
        mass = policy.masses(ids)
        chances = mass / mass.sum() if mass.sum() > 0 else np.full(len(ids), 1.0 / len(ids))
        return _Offered(policy, barred, 0.0, (ids, chances))


class _Asked:
    """A policy in the context of a question; all that is asked of it takes one pass over its actions."""

    def __init__(self, policy: Policy, asked: Question) -> None:
        self.at, self._actions = in_context(policy, asked.context), policy.action_count

    def masses(self, ids: Ints) -> Array:
        """What the policy gives to each of these, 0 where it does not know it."""
        mass, mine = np.zeros(len(ids)), ids < self._actions
        if mine.any():
            mass[mine] = self.at.probabilities(ids[mine])
        return mass

    def mass(self, ids: Collection[int]) -> float:
        """What it gives to them together."""
        return float(self.masses(np.fromiter(ids, np.int64, len(ids))).sum())


@dataclass(frozen=True)
class _Offered:
    """What a policy chooses from: all but the barred actions, to which it gives `left_out`; or what is listed, with chances."""

    policy: _Asked
    barred: frozenset[int]
    left_out: float
    listed: tuple[Ints, Array] | None = None

    def draw(self, rng: np.random.Generator) -> int:
        """One of them."""
        if self.listed is None:
            return self.policy.at.draw_allowed(rng, self.barred)
        ids, chances = self.listed
        return int(rng.choice(ids, p=chances))

    def propensity(self, action: int) -> Propensity:
        """How likely that is to be this action."""
        if self.listed is not None:
            value = float(self.listed[1][self.listed[0] == action].sum())
        elif action in self.barred:
            value = 0.0
        else:
            value = min(1.0, self.policy.mass([action]) / (1.0 - self.left_out))
        return Propensity(value, value, exact=True)


class PolicyArm(Arm):
    """A policy that was learned elsewhere, and does not learn here."""

    kind = "policy"

    def __init__(
        self,
        policy: Policy,
        draws: NumberedDraws,
        retired: frozenset[int] = frozenset(),
        since: int = 0,
    ) -> None:
        super().__init__(False, since)
        self.policy = policy
        self.draws = draws
        self._retired = retired

    @property
    def actions(self) -> int:
        return self.policy.action_count

    @property
    def dim(self) -> None:
        return None

    @property
    def retired(self) -> frozenset[int]:
        return self._retired

    def take_over(self, retired: Set[int]) -> None:
        self._retired = frozenset(retired)

    def check_reward(self, value: float) -> None:
        pass

    def view(self) -> PolicyView:
        return PolicyView(self.policy, self.draws, self._retired)

    def save(self, folder: Path) -> None:
        self.policy.save(folder)  # type: ignore[attr-defined]

    def observe(self, X: Array, actions: Ints, rewards: Array, at: Array) -> None:
        pass  # it was learned elsewhere

    def replace_reward(self, X: Array, actions: Ints, was: Array, now: Array, at: Array) -> None:
        pass

    def check_catalogue(self, kind: str, body: dict[str, Any]) -> None:
        pass  # it only leaves out what is retired

    def change_catalogue(self, kind: str, body: dict[str, Any]) -> list[int]:
        if kind == "retire":
            self._retired |= set(body["actions"])
        elif kind == "reinstate":
            self._retired -= set(body["actions"])
        return []


__all__ = ["PolicyArm", "PolicyView"]
