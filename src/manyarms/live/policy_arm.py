"""A policy as an arm: it was learned elsewhere, stays as it is, and leaves out what it may not choose."""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base.typing import Array, Ints
from manyarms.agents.decisions import Propensity
from manyarms.agents.draws import NumberedDraws
from manyarms.errors import InvalidInput
from manyarms.live.arms import Arm, ArmView
from manyarms.live.records import Question
from manyarms.policies import Policy

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
        self.check(asked)
        barred, left = self._filters(asked)
        stream = self.draws.decision(draw)
        try:
            rng = stream.generator
            if left is None:  # drawn until one is allowed: the law of the policy, given that it is
                while True:
                    found = int(self.policy.sample_rows(asked.context[None], rng)[0])
                    if found not in barred:
                        return [found]
            ids, chances = left
            return [int(rng.choice(ids, p=chances))]
        finally:
            self.draws.release(stream)

    def propensity(self, asked: Question, action: int, draw: int, draws: int | None = None) -> Propensity:
        self.check(asked)
        barred, left = self._filters(asked)
        if left is not None:
            value = float(left[1][left[0] == action].sum())
        elif action in barred:
            value = 0.0
        else:
            value = min(1.0, float(self._mass(asked, [action]).sum() / (1.0 - self._mass(asked, barred).sum())))
        return Propensity(value, value, exact=True)

    def greedy(self, asked: Question) -> int | None:
        return None

    def can_do_without(self, asked: Question, barred: set[int]) -> bool:
        if asked.candidates is not None:
            return not barred.issuperset(asked.candidates)
        return bool(self._mass(asked, self.retired | barred).sum() < 1.0 - RARE)

    def _filters(self, asked: Question) -> tuple[frozenset[int], tuple[Ints, Array] | None]:
        """What may not be chosen; what may, where it has to be listed, and its chances.

        They are in proportion to the policy's, or equal where it would take none of them.
        """
        barred = self.retired if asked.exclude is None else self.retired | set(asked.exclude)
        if asked.candidates is not None:
            listed = asked.candidates
            if len(set(listed)) < len(listed):
                raise InvalidInput("candidates", "an action more than once", "every action at most once")
        elif barred and self._mass(asked, barred).sum() > 1.0 - RARE:
            listed = list(range(self.policy.action_count))
        else:
            return barred, None
        ids = np.array([a for a in listed if a not in barred], dtype=np.int64)
        if not len(ids):
            name = "exclude" if asked.candidates is None else "candidates"
            raise InvalidInput(name, "nothing left to choose from", "at least one action, neither retired nor excluded")
        mass = self._mass(asked, ids.tolist())
        return barred, (ids, mass / mass.sum() if mass.sum() > 0 else np.full(len(ids), 1.0 / len(ids)))

    def _mass(self, asked: Question, ids: Collection[int]) -> Array:
        """What the policy gives to each of these, 0 where it does not know it."""
        known = np.fromiter(ids, np.int64, len(ids))
        mass, mine = np.zeros(len(known)), known < self.policy.action_count
        if mine.any():
            mass[mine] = self.policy.probabilities_of_many(asked.context[None], known[mine][None])[0]
        return mass


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

    def observe(self, X: Array, actions: Ints, rewards: Array) -> None:
        pass  # it was learned elsewhere

    def replace_reward(self, X: Array, actions: Ints, was: Array, now: Array) -> None:
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
