"""An agent: one belief, one decision, one stream of random numbers, and checks at the edge."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt

from manyarms._base import storage, validate
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.agents.decisions import Decision, Greedy, Propensity, restore_decision
from manyarms.agents.questions import questions
from manyarms.beliefs import Belief, restore_belief
from manyarms.errors import InvalidInput
from manyarms.logs.data import LogSource
from manyarms.logs.schema import Schema
from manyarms.policies import DeterministicPolicy, EpsilonMixture, Policy, UniformPolicy

Seed = int | np.random.Generator | None


class Agent:
    """Decides, learns, and can be saved.

    >>> import manyarms as ma
    >>> agent = ma.LinTS(ma.ActionPrior(actions=1000, mean=[0.0, 0.0], covariance=[[1.0, 0.0], [0.0, 1.0]]), seed=0)
    >>> action = agent.decide([0.5, -0.2])
    >>> agent.observe([0.5, -0.2], action, 1.0)
    >>> agent.played
    1
    """

    def __init__(self, belief: Belief, decision: Decision, seed: Seed = None, name: str = "agent") -> None:
        self.belief = belief
        self.decision = decision
        self.rng = validate.seeded(seed)
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}: {self.actions:,} actions, {self.played:,} played, d={self.belief.dim}>"

    # ---- deciding -----------------------------------------------------------------------------------------------------

    def decide(
        self,
        x: npt.ArrayLike | None = None,
        *,
        candidates: npt.ArrayLike | Sequence[npt.ArrayLike] | None = None,
        exclude: npt.ArrayLike | None = None,
        k: int | None = None,
        action_contexts: npt.ArrayLike | Sequence[npt.ArrayLike] | None = None,
        rng: Seed = None,
    ) -> int | Ints:
        """The action to take in context x, or the best k of them, best first.

        x: one context (d,), or a batch (n, d), each with a draw of its own. candidates: only these; exclude: not these.
        Returns an int, or arrays of shape (k,), (n,) or (n, k). rng: a generator or seed to use in place of the agent's own.

        action_contexts: a context for each action in place of one for all, (m, d), so that action a scores z_a^T theta_a. Row i
        belongs to candidates[i]; without candidates there is a row for every action, by id (those of retired ones are not
        looked at). A batch is (n, m, d) with candidates that all contexts share, or with a list of n lists of candidates; these
        may differ in length, with a list of n arrays (m_i, d). x is not needed then: if given it must have as many contexts,
        and the scores do not depend on it. Learn with `observe(z_a, a, r)`. Cost O(m d^2), whatever the catalogue's size.
        """
        asked, single, number = questions(self.belief, x, candidates, exclude, action_contexts, k)
        generator = self.rng if rng is None else validate.seeded(rng)
        chosen: list[Ints] = []
        for belief, X, offer in asked:
            picks = self.decision.pick(belief, X, offer, number, generator)
            if single and k is None:
                return int(picks[0].actions(offer, generator)[0])
            chosen += [pick.actions(offer, generator) for pick in picks]
        ids = np.array(chosen)
        if k is None:
            ids = ids[:, 0]
        return cast(Ints, ids[0]) if single else ids

    def propensity(
        self,
        x: npt.ArrayLike | None,
        action: int,
        *,
        candidates: npt.ArrayLike | None = None,
        exclude: npt.ArrayLike | None = None,
        k: int = 1,
        draws: int = 1000,
        action_contexts: npt.ArrayLike | None = None,
        rng: Seed = None,
    ) -> Propensity:
        """How likely `decide` is to choose `action` in context x (or with `action_contexts`) under the same filters.

        Exact for decisions that do not draw, for epsilon-greedy and uniform; a Monte-Carlo estimate over `draws` decisions for
        Thompson sampling, and it says so (`exact`, `draws`, `standard_error`). An action that the filters leave out has 0.
        The estimate uses a generator of its own unless one is given: asking does not change the agent's next decision.
        """
        asked, single, number = questions(self.belief, x, candidates, exclude, action_contexts, k)
        belief, X, offer = asked[0]
        if not single:
            name = "x" if action_contexts is None else "action_contexts"
            raise InvalidInput(name, f"a batch of {sum(len(q.X) for q in asked)}", "a single context")
        action, draws = self.belief.catalogue.check_one("action", action), validate.count("draws", draws)
        if rng is None:
            # seeded by a copy of the agent's stream: neither a part of it nor a repetition of what comes next
            rng = np.random.default_rng(copy.deepcopy(self.rng).integers(1 << 63, size=2))
        generator = validate.seeded(rng)
        return self.decision.propensity(belief, X[0], action, offer, number, draws, generator)

    # ---- learning -----------------------------------------------------------------------------------------------------

    def observe(self, x: npt.ArrayLike, action: int | npt.ArrayLike, reward: float | npt.ArrayLike) -> None:
        """Learn what came of it: one row, or a batch of contexts (n, d), actions (n,) and rewards (n,).

        A batch gives the same belief as its rows one by one, in any order. A late reward of an action that has been retired
        since is learned like any other, and the action stays retired; an unknown id refuses the whole call.
        """
        catalogue, likelihood = self.belief.catalogue, self.belief.likelihood
        X, single = self.belief.observed_contexts(x, action)
        if single:
            ids = np.array([catalogue.check_one("action", action, retired=True)])
            rewards = validate.as_array("reward", reward, ())[None]
        else:
            ids = catalogue.check("action", cast(npt.ArrayLike, action), unique=False, retired=True)
            if len(ids) != len(X):
                raise InvalidInput("action", f"{len(ids)} actions", f"{len(X)}, one for each context")
            rewards = validate.as_array("reward", reward, (len(X),))
        likelihood.check(rewards)
        self.belief.observe(X, ids, rewards)

    def posterior(self, action: int) -> tuple[Array, Array]:
        """Mean (d,) and covariance (d, d) of an action's parameter, the root integrated out; of a retired one, too."""
        ids = np.array([self.belief.catalogue.check_one("action", action, retired=True)])
        mean, covariance = self.belief.action_posterior(ids)
        return mean[0], covariance[0]

    # ---- the catalogue ------------------------------------------------------------------------------------------------

    @property
    def actions(self) -> int:
        """How many actions there are that are not retired."""
        return self.belief.catalogue.alive

    @property
    def played(self) -> int:
        """How many different actions have been observed."""
        return len(self.belief.catalogue.played)

    def add_actions(
        self,
        number: int | None = None,
        *,
        weights: npt.ArrayLike | None = None,
        covariance: npt.ArrayLike | None = None,
    ) -> Ints:
        """New actions at their prior; returns their ids, which continue the count. Nothing else changes.

        weights: a row of mixing weights for each (mixed effects), or its matrix W_a; number: how many, where no rows tell.
        covariance: prior covariances, where every action has its own.
        """
        given = None if covariance is None else validate.as_floats("covariance", covariance)
        return self.belief.add_actions(weights, number, given)

    def retire(self, actions: int | npt.ArrayLike) -> None:
        """Do not choose these any more, until they are reinstated. What they taught stays, and so do their ids.

        Rewards that come late are still learned: give them to `observe`. Like adding and reinstating, it costs microseconds an
        action, whatever the catalogue's size.
        """
        catalogue = self.belief.catalogue
        listed = [actions] if np.isscalar(actions) else actions
        catalogue.retire(catalogue.check("actions", cast(npt.ArrayLike, listed), unique=True))

    def reinstate(self, actions: int | npt.ArrayLike) -> None:
        """Choose these again, which were retired: with all that is known of them, as if they had never been away."""
        catalogue = self.belief.catalogue
        listed = [actions] if np.isscalar(actions) else actions
        catalogue.reinstate(catalogue.check_retired("actions", cast(npt.ArrayLike, listed)))

    # ---- keeping ------------------------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes that the belief holds, prior and derived tables included."""
        return self.belief.nbytes

    def copy(self) -> Agent:
        """An independent agent in the same state, random numbers included."""
        return copy.deepcopy(self)

    def save(self, folder: str | Path, log: LogSource | None = None) -> None:
        """Write the whole agent to a folder; the next decision after `manyarms.load(folder)` is the same to the last bit.

        log: the log that it learned from, whose encoder and action ids are then saved beside it (see `manyarms.logs.Schema`).
        """
        spec = {
            "name": self.name,
            "belief": self.belief.spec(),
            "decision": {"kind": self.decision.kind, **self.decision.options()},
            "generator": storage.generator_state(self.rng),
        }
        storage.save(folder, "agent", cast("dict[str, storage.JSON]", spec), self.belief.arrays())
        if log is not None:
            Schema.of(log).save(folder)

    def as_policy(self) -> Policy:
        """The agent as a policy with known probabilities, its belief held fixed; refused where its decision draws from it."""
        catalogue = self.belief.catalogue
        complete = catalogue.alive == catalogue.size
        kind, options = self.decision.kind, self.decision.options()
        if not self.decision.draws:
            return DeterministicPolicy(lambda X: self.decide(X), catalogue.size)
        if kind == "uniform" and complete:
            return UniformPolicy(catalogue.size)
        if kind == "epsilon-greedy" and complete:
            greedy = Agent(self.belief, Greedy(), 0, self.name)
            chosen = DeterministicPolicy(lambda X: greedy.decide(X), catalogue.size)
            return EpsilonMixture(chosen, float(str(options["epsilon"])))
        came = f"an agent that decides by {kind}" + ("" if complete else " and has retired actions")
        raise InvalidInput(
            "policy", came, "a policy, or an agent that decides greedily, pessimistically, by an index or epsilon-greedily: "
            "only then are its probabilities known",
        )  # fmt: skip


@storage.LOADERS.register("agent")
def _restore(spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> Agent:
    belief, decision = restore_belief(spec["belief"], arrays), restore_decision(spec["decision"])
    return Agent(belief, decision, storage.restore_generator(spec["generator"]), str(spec["name"]))
