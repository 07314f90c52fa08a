"""Arms: what can decide in a live store. An agent, which learns; a policy, which stays as it is; or the caller's own choice.

An arm changes when a chunk is folded. Decisions are made on a *view* of it, which never changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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

TRIES = 1000  # draws of a policy before one is found that the filters allow


class ArmView(ABC):
    """An arm as it is at one version."""

    exact: bool
    """Whether its propensities are known exactly."""

    @abstractmethod
    def decide(self, asked: Question, draw: int) -> list[int]:
        """The actions that it takes, by the random numbers of a draw."""

    @abstractmethod
    def propensity(self, asked: Question, action: int, draw: int, draws: int | None = None) -> Propensity:
        """How likely `decide` is to take this action first, or at all; `draws`: how many are drawn to estimate it."""

    @abstractmethod
    def greedy(self, asked: Question) -> int | None:
        """The action that looks best to it; None where it cannot tell."""

    @property
    def catalogue(self) -> int:
        """How many actions it has ever known."""
        return 0


class Arm(ABC):
    """What decides, learns, and is kept in snapshots.

    learns: whether it is taught. since: the position at which it joined: decisions after it teach it, earlier ones do not.
    """

    kind: str

    def __init__(self, learns: bool = True, since: int = 0) -> None:
        self.learns = learns
        self.since = since

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

    @property
    def catalogue(self) -> int:
        return int(self.snapshot.belief.catalogue.size)


class AgentArm(Arm):
    """An agent."""

    kind = "agent"

    def __init__(self, agent: Agent, learns: bool = True, since: int = 0) -> None:
        super().__init__(learns, since)
        self.agent = agent

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
    return not agent.decision.draws or agent.decision.kind in ("uniform", "epsilon-greedy")


# ---- a policy


@dataclass(frozen=True)
class PolicyView(ArmView):
    """A policy, the key of its draws, and the actions that are retired."""

    policy: Policy
    draws: NumberedDraws
    retired: frozenset[int]
    exact: bool = True

    def decide(self, asked: Question, draw: int) -> list[int]:
        _one_action(asked)
        stream = self.draws.decision(draw)
        try:
            rng = stream.generator
            if asked.candidates is not None:
                ids, mass = self._of_candidates(asked)
                return [int(rng.choice(ids, p=mass / mass.sum()))]
            barred = self._barred(asked)
            for _ in range(TRIES):
                found = int(self.policy.sample(asked.context[None], rng)[0])
                if found not in barred:
                    return [found]
            raise InvalidInput("exclude", f"{len(barred)} actions", "fewer: the policy hardly ever takes any other")
        finally:
            self.draws.release(stream)

    def propensity(self, asked: Question, action: int, draw: int, draws: int | None = None) -> Propensity:
        _one_action(asked)
        if asked.candidates is not None:
            ids, mass = self._of_candidates(asked)
            value = float(mass[ids == action].sum() / mass.sum())
        else:
            barred = sorted(self._barred(asked))
            listed = np.array([[action, *barred]])
            mass = self.policy.probabilities_of_many(asked.context[None], listed)[0]
            value = 0.0 if action in barred else min(1.0, float(mass[0] / (1.0 - mass[1:].sum())))
        return Propensity(value, value, exact=True)

    def greedy(self, asked: Question) -> int | None:
        return None

    def _barred(self, asked: Question) -> frozenset[int]:
        return self.retired if asked.exclude is None else self.retired | set(asked.exclude)

    def _of_candidates(self, asked: Question) -> tuple[Ints, Array]:
        """The candidates that are left, and what the policy gives to each."""
        assert asked.candidates is not None
        barred = self._barred(asked)
        ids = np.array([a for a in asked.candidates if a not in barred], dtype=np.int64)
        if not len(ids):
            raise InvalidInput("candidates", "only actions that are excluded or retired", "at least one that is not")
        mass = self.policy.probabilities_of_many(asked.context[None], ids[None])[0]
        return ids, mass if mass.sum() > 0 else np.ones(len(ids))


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
        self.retired = retired

    def view(self) -> PolicyView:
        return PolicyView(self.policy, self.draws, self.retired)

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
            self.retired |= set(body["actions"])
        elif kind == "reinstate":
            self.retired -= set(body["actions"])
        return []


def _one_action(asked: Question) -> None:
    if asked.k not in (None, 1):
        raise InvalidInput("k", asked.k, "1: a policy chooses one action")
    if asked.per_action:
        raise InvalidInput("action_contexts", "contexts for each action", "one context: a policy decides here")


def an_arm(name: str, value: object, learns: bool = True) -> Arm:
    """An agent or a policy, as an arm."""
    if isinstance(value, Agent):
        return AgentArm(value.copy(), learns)
    if isinstance(value, Policy) and not isinstance(value, type):
        if not hasattr(value, "save"):
            raise InvalidInput(name, validate.describe(value), "a policy that can be saved")
        return PolicyArm(value, NumberedDraws.seeded(None))
    raise InvalidInput(name, validate.describe(value), "an agent or a policy")


def without(asked: Question, capped: frozenset[int]) -> Question:
    """The question with these actions left out as well, where that leaves any."""
    if not capped:
        return asked
    if asked.candidates is not None and not (set(asked.candidates) - set(asked.exclude or ()) - capped):
        return asked
    return replace(asked, exclude=sorted({*(asked.exclude or ()), *capped}))


__all__ = ["AgentArm", "Arm", "ArmView", "PolicyArm", "an_arm", "knows_its_propensities", "without"]
