"""An agent as an arm: it learns what it is taught, and decides by a snapshot of itself."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manyarms._base import validate
from manyarms._base.explanation import Explanation
from manyarms._base.typing import Array, Ints
from manyarms.agents import Agent
from manyarms.agents.deciding import Snapshot
from manyarms.agents.decisions import Greedy, Propensity
from manyarms.beliefs import Belief
from manyarms.errors import InvalidInput
from manyarms.live.arms import Arm, ArmView
from manyarms.live.records import Question


@dataclass(frozen=True)
class AgentView(ArmView):
    """A snapshot of an agent."""

    snapshot: Snapshot
    exact: bool

    @property
    def timed(self) -> bool:
        return by_the_clock(self.snapshot.belief)

    def options(self, asked: Question) -> dict[str, Any]:
        """As keywords of `Agent.decide`; the time only where it is asked for, as agents that count rounds refuse it."""
        found = asked.arguments()
        if not self.timed:
            found.pop("at", None)
        return found

    def decide(self, asked: Question, draw: int) -> list[int]:
        found = self.snapshot.decide(**self.options(asked), draw=draw)
        return [found] if isinstance(found, int) else found.tolist()

    def propensity(self, asked: Question, action: int, draw: int, draws: int | None = None) -> Propensity:
        if action in self.snapshot.belief.catalogue.retired:  # the caller's own choice
            return Propensity(0.0, 0.0, exact=True)
        options = self.options(asked)
        options["k"] = asked.k or 1
        if draws is not None:
            options["draws"] = draws
        return self.snapshot.propensity(options.pop("x", None), action, draw=draw, **options)

    def check_reward(self, value: float) -> None:
        self.snapshot.belief.likelihood.check(np.array([value]))

    def greedy(self, asked: Question) -> int | None:
        options = self.options(asked) | {"k": None}
        return int(self.best.decide(**options, draw=0))

    def explain(self, asked: Question, action: int) -> Explanation:
        context = asked.context_of(action)
        if context is None:
            raise InvalidInput("action", action, "one of the candidates, which have contexts")
        return self.snapshot.belief.at(asked.at if self.timed else None).explain(context, action)

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

    def observe(self, X: Array, actions: Ints, rewards: Array, at: Array) -> None:
        self.agent.observe(X, actions, rewards, at=self.times(at))

    def replace_reward(self, X: Array, actions: Ints, was: Array, now: Array, at: Array) -> None:
        self.agent.replace_reward(X, actions, was, now, at=self.times(at))

    def times(self, at: Array) -> Array | None:
        """The times of rows, as the agent takes them: none where it does not go by the clock."""
        return at if by_the_clock(self.agent.belief) else None

    def check_catalogue(self, kind: str, body: dict[str, Any]) -> None:
        belief = self.agent.belief
        if kind == "retire":
            belief.catalogue.check("actions", body["actions"], unique=True)
        elif kind == "reinstate":
            belief.catalogue.check_retired("actions", body["actions"])
        elif kind == "update_actions":
            if "weights" in self.features:
                belief.new_weights(body["actions"], body["weights"])
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
        elif kind == "update_actions":
            if "weights" in self.features:
                self.agent.update_actions(body["actions"], weights=body["weights"])
        else:
            new: list[int] = self.agent.add_actions(**self.of_new_actions(body)).tolist()
            return new
        return []

    def of_new_actions(self, body: dict[str, Any]) -> dict[str, Any]:
        """What this agent needs to be told of new actions: weights and covariances only where it has them of its own."""
        return {name: body[name] for name in ("number", *sorted(self.features)) if body.get(name) is not None}

    @property
    def features(self) -> frozenset[str]:
        leaves = getattr(self.agent.belief, "leaves", None)
        weights = leaves is None or leaves.mixing.features is not None
        covariance = leaves is None or not leaves.shared
        return frozenset(name for name, has in (("weights", weights), ("covariance", covariance)) if has)


def by_the_clock(belief: Belief) -> bool:
    """Whether what it knows changes with the time of day, and not with rows alone, or never."""
    return belief.memory is not None and not belief.memory.clock.counts


def knows_its_propensities(agent: Agent | Snapshot) -> bool:
    """Whether the rule that it decides by knows the probabilities of its choices."""
    return agent.decision.exact or not agent.decision.draws


__all__ = ["AgentArm", "AgentView", "by_the_clock", "knows_its_propensities"]
