"""Arms: what can decide in a live store. An agent, which learns; a policy, which stays as it is; or the caller's own choice.

An arm changes when a chunk is folded. Decisions are made on a *view* of it, which never changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array, Ints
from manyarms.agents import Agent
from manyarms.agents.deciding import Snapshot
from manyarms.agents.decisions import Greedy, Propensity
from manyarms.agents.draws import NumberedDraws
from manyarms.errors import InvalidInput
from manyarms.live.records import Question
from manyarms.policies import Policy

RARE = 0.01  # where filters leave less of a policy than this, what is left is listed rather than waited for


class ArmView(ABC):
    """An arm as it is at one version."""

    exact: bool
    """Whether its propensities are known exactly."""

    def check(self, asked: Question) -> None:
        """Refuse a kind of question that it never answers, though others do."""
        return

    @abstractmethod
    def decide(self, asked: Question, draw: int) -> list[int]:
        """The actions that it takes, by the random numbers of a draw."""

    @abstractmethod
    def propensity(self, asked: Question, action: int, draw: int, draws: int | None = None) -> Propensity:
        """How likely `decide` is to take this action first, or at all; `draws`: how many are drawn to estimate it."""

    @abstractmethod
    def greedy(self, asked: Question) -> int | None:
        """The action that looks best to it; None where it cannot tell."""

    @abstractmethod
    def can_do_without(self, asked: Question, barred: set[int]) -> bool:
        """Whether it still has as many actions as were asked for where these, and those retired, are left out."""


class Arm(ABC):
    """What decides, learns, and is kept in snapshots.

    learns: whether it is taught. since: the position at which it joined: decisions after it teach it, earlier ones do not.
    """

    kind: str

    def __init__(self, learns: bool = True, since: int = 0) -> None:
        self.learns = learns
        self.since = since

    @property
    @abstractmethod
    def actions(self) -> int:
        """How many actions it has ever known: their ids are below."""

    @property
    @abstractmethod
    def dim(self) -> int | None:
        """The length of the contexts that it learns from; None where it learns nothing."""

    @property
    @abstractmethod
    def retired(self) -> Set[int]:
        """Which of them are retired."""

    @abstractmethod
    def take_over(self, retired: Set[int]) -> None:
        """From now on these are retired, and no others."""

    @abstractmethod
    def check_reward(self, value: float) -> None:
        """Refuse a reward that it could not learn."""

    @abstractmethod
    def view(self) -> ArmView:
        """As it is now, for ever."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write it to a folder."""

    @abstractmethod
    def observe(self, X: Array, actions: Ints, rewards: Array) -> None:
        """Learn rows."""

    @abstractmethod
    def replace_reward(self, X: Array, actions: Ints, was: Array, now: Array) -> None:
        """Learn that rewards it has learned were others."""

    @abstractmethod
    def check_catalogue(self, kind: str, body: dict[str, Any]) -> None:
        """Refuse what `change_catalogue` could not do."""

    @abstractmethod
    def change_catalogue(self, kind: str, body: dict[str, Any]) -> list[int]:
        """Add, retire or reinstate actions; the ids of new ones."""


# ---- an agent


@dataclass(frozen=True)
class AgentView(ArmView):
    """A snapshot of an agent."""

    snapshot: Snapshot
    exact: bool

    def decide(self, asked: Question, draw: int) -> list[int]:
        found = self.snapshot.decide(**asked.arguments(), draw=draw)
        return [found] if isinstance(found, int) else found.tolist()

    def propensity(self, asked: Question, action: int, draw: int, draws: int | None = None) -> Propensity:
        if action in self.snapshot.belief.catalogue.retired:  # the caller's own choice
            return Propensity(0.0, 0.0, exact=True)
        options = asked.arguments()
        options["k"] = asked.k or 1
        if draws is not None:
            options["draws"] = draws
        return self.snapshot.propensity(options.pop("x", None), action, draw=draw, **options)

    def greedy(self, asked: Question) -> int | None:
        options = asked.arguments() | {"k": None}
        return int(self.best.decide(**options, draw=0))

    @property
    def best(self) -> Snapshot:
        """The same belief, decided greedily."""
        return Snapshot(self.snapshot._belief, Greedy(), self.snapshot._draws, "greedy")

    def can_do_without(self, asked: Question, barred: set[int]) -> bool:
        catalogue = self.snapshot.belief.catalogue
        wanted = asked.k or 1
        if asked.candidates is not None:
            return len(set(asked.candidates) - barred) >= wanted
        return catalogue.size - len(catalogue.retired | barred) >= wanted


class AgentArm(Arm):
    """An agent."""

    kind = "agent"

    def __init__(self, agent: Agent, learns: bool = True, since: int = 0) -> None:
        super().__init__(learns, since)
        self.agent = agent

    @property
    def actions(self) -> int:
        return self.agent.belief.catalogue.size

    @property
    def dim(self) -> int:
        return self.agent.belief.dim

    @property
    def retired(self) -> Set[int]:
        return self.agent.belief.catalogue.retired

    def take_over(self, retired: Set[int]) -> None:
        mine = set(self.retired)
        if retired - mine:
            self.agent.retire(sorted(retired - mine))
        if mine - retired:
            self.agent.reinstate(sorted(mine - retired))

    def check_reward(self, value: float) -> None:
        self.agent.belief.likelihood.check(np.array([value]))

    def view(self) -> AgentView:
        return AgentView(self.agent.snapshot(), knows_its_propensities(self.agent))

    def save(self, folder: Path) -> None:
        self.agent.save(folder)

    def observe(self, X: Array, actions: Ints, rewards: Array) -> None:
        self.agent.observe(X, actions, rewards)

    def replace_reward(self, X: Array, actions: Ints, was: Array, now: Array) -> None:
        self.agent.replace_reward(X, actions, was, now)

    def check_catalogue(self, kind: str, body: dict[str, Any]) -> None:
        belief = self.agent.belief
        if kind == "retire":
            belief.catalogue.check("actions", body["actions"], unique=True)
        elif kind == "reinstate":
            belief.catalogue.check_retired("actions", body["actions"])
        else:
            told = self.of_new_actions(body)
            covariance = told.get("covariance")
            given = None if covariance is None else validate.as_floats("covariance", covariance)
            belief.new_actions(told.get("weights"), told.get("number"), given)

    def change_catalogue(self, kind: str, body: dict[str, Any]) -> list[int]:
        if kind == "retire":
            self.agent.retire(body["actions"])
        elif kind == "reinstate":
            self.agent.reinstate(body["actions"])
        else:
            new: list[int] = self.agent.add_actions(**self.of_new_actions(body)).tolist()
            return new
        return []

    def of_new_actions(self, body: dict[str, Any]) -> dict[str, Any]:
        """What this agent needs to be told of new actions: weights and covariances only where it has them of its own."""
        belief = self.agent.belief
        told: dict[str, Any] = {"number": body["number"]}
        leaves = getattr(belief, "leaves", None)
        if leaves is None or leaves.mixing.features is not None:
            told["weights"] = body.get("weights")
        if leaves is None or not leaves.shared:
            told["covariance"] = body.get("covariance")
        return {name: value for name, value in told.items() if value is not None}


def knows_its_propensities(agent: Agent | Snapshot) -> bool:
    """Whether the rule that it decides by knows the probabilities of its choices."""
    return agent.decision.exact or not agent.decision.draws


# ---- a policy


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
                    found = int(self.policy.sample(asked.context[None], rng)[0])
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
            value = min(1.0, self._mass(asked, [action]).sum() / (1.0 - self._mass(asked, barred).sum()))
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


def an_arm(name: str, value: object, learns: bool = True) -> Arm:
    """An agent or a policy, as an arm."""
    if isinstance(value, Agent):
        return AgentArm(value.copy(), learns)
    if isinstance(value, Policy) and not isinstance(value, type):
        if not hasattr(value, "save"):
            raise InvalidInput(name, validate.describe(value), "a policy that can be saved")
        return PolicyArm(value, NumberedDraws.seeded(None))
    raise InvalidInput(name, validate.describe(value), "an agent or a policy")


def check_joins(arm: Arm, others: Iterable[Arm], default: float | None) -> None:
    """Refuse an arm that does not fit the others of a store: whatever one of them takes, all that learn can learn."""
    if default is not None:
        try:
            arm.check_reward(default)
        except InvalidInput:
            raise InvalidInput("default", f"{default:g}", "a reward that every agent of the store can learn") from None
    for other in others:
        agents = arm.dim is not None, other.dim is not None
        if all(agents) and arm.dim != other.dim:
            raise InvalidInput(
                "arm", f"contexts of length {arm.dim}", f"length {other.dim}, as the store's agents have"
            )
        if all(agents) and arm.actions != other.actions:
            raise InvalidInput("arm", f"{arm.actions} actions", f"{other.actions}, as the store's agents have")
        if any(agents):
            agent, policy = (arm, other) if agents[0] else (other, arm)
            if policy.actions > agent.actions:
                raise InvalidInput(
                    "arm", f"a policy for {policy.actions} actions", f"at most {agent.actions}, the agents'"
                )


def without(asked: Question, capped: frozenset[int], arm: ArmView) -> Question:
    """The question with these actions left out as well, where that leaves enough of what the arm chooses from."""
    if not capped:
        return asked
    barred = {*(asked.exclude or ()), *capped}
    return replace(asked, exclude=sorted(barred)) if arm.can_do_without(asked, barred) else asked


__all__ = ["AgentArm", "Arm", "ArmView", "PolicyArm", "an_arm", "check_joins", "knows_its_propensities", "without"]
