"""An agent: a belief, a decision rule and numbered draws.

What is learned is checked here, before anything changes; what is asked, in deciding.py and questions.py. What is below works on
checked arrays.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import cast

import numpy as np
import numpy.typing as npt

from manyarms._base import storage, validate
from manyarms._base.nested import under
from manyarms._base.typing import AnyArray, Array, ContextLike, Ints, TimeLike, loose
from manyarms.agents.deciding import Decider
from manyarms.agents.decisions import Decision, restore_decision
from manyarms.agents.draws import MOST_COUNTED, NumberedDraws, Seed
from manyarms.agents.shared_belief import SharedBelief
from manyarms.beliefs import Belief, restore_belief
from manyarms.beliefs.drift.clock import Clock, as_times
from manyarms.beliefs.residuals import Residuals, residuals
from manyarms.errors import InvalidInput
from manyarms.logs.actions import ActionId, Actions, listed_ids
from manyarms.logs.contexts import encoded
from manyarms.logs.schema import ActionsLike, EncoderLike, Schema

ManyIds = npt.ArrayLike | Iterable[ActionId]
"""Ids of several actions."""


class Agent(Decider):
    """Decides, learns, and can be saved.

    Threads may share it: decisions are made side by side on a state that does not change under them, changes are learned one
    after the other, and neither waits for the other for long.

    >>> import manyarms as ma
    >>> agent = ma.LinTS(ma.ActionPrior(actions=1000, mean=[0.0, 0.0], covariance=[[1.0, 0.0], [0.0, 1.0]]), seed=0)
    >>> action = agent.decide([0.5, -0.2])
    >>> agent.observe([0.5, -0.2], action, 1.0)
    >>> agent.played
    1
    """

    def __init__(
        self,
        belief: Belief,
        decision: Decision,
        seed: Seed = None,
        name: str = "agent",
        catalogue: ActionsLike | None = None,
        encoder: EncoderLike | None = None,
    ) -> None:
        """catalogue: the ids of the actions, in their order: strings or integers, by which everything then calls them.

        encoder: makes contexts of rows of a table, such as `log.encoder`, or a fitted scikit-learn transformer.
        """
        validate.instance("belief", belief, Belief, "a belief, such as belief_of(prior, likelihood) makes")
        validate.instance("decision", decision, Decision, "a decision, such as Thompson()")
        schema = Schema.given(catalogue, encoder)
        if schema.encoder is not None and belief.per_action and schema.encoder.dim != belief.dim:
            came = f"an encoder that makes contexts of length {schema.encoder.dim}"
            raise InvalidInput("encoder", came, f"length {belief.dim}, that of the prior's parameters")
        if schema.catalogue is not None:
            belief.catalogue.check_names(schema.catalogue)
        super().__init__(SharedBelief(belief), decision, NumberedDraws.seeded(seed), name, schema.encoder)
        if schema.catalogue is not None:
            self.belief.catalogue.names = schema.catalogue

    _belief: SharedBelief

    # ---- learning -----------------------------------------------------------------------------------------------------

    def observe(
        self, x: ContextLike, action: ActionId | ManyIds, reward: float | npt.ArrayLike, *, at: TimeLike = None
    ) -> None:
        """Learn what came of it: one row, or a batch of contexts (n, d), actions (n,) and rewards (n,).

        A batch gives the same belief as its rows one by one, in any order. A late reward of an action that has been retired
        since is learned like any other, and the action stays retired; an unknown id refuses the whole call.

        at: when it was decided, one time or one for each row, as numbers or dates (as seconds since 1970, UTC where they do not
        say): where rewards drift by the clock (`drift=Drift(..., clock="time")`). None: the latest time that is known. Other
        agents do not need it. Where rewards drift, the rows of a batch are learned in the order of their times.
        """
        with self._belief.learning:
            belief = self._belief.belief
            X, ids, single = _taken(belief, encoded(self._encoder, x), action)
            rewards = _rewards("reward", reward, None if single else len(X))
            belief.likelihood.check(rewards)
            times = belief.times(at, len(X))
            self._belief.change(_learn, *belief.evidence(X, ids, rewards), times)

    def replace_reward(
        self,
        x: ContextLike,
        action: ActionId | ManyIds,
        was: float | npt.ArrayLike,
        now: float | npt.ArrayLike,
        *,
        at: TimeLike = None,
    ) -> None:
        """Be as if `now` had been observed where `was` was: for one row, or a batch (n, d), (n,), (n,) and (n,).

        For a reward that was learned too early: a default after some waiting, in whose place the real one comes; a click's 1
        that becomes 21 with the purchase. Whatever was learned in between stays, and so do counts and all other rows. For linear
        rewards the posterior is that of the other reward, to rounding, at the cost of a row. Other likelihoods fit the action
        again, as they do after every row.

        Give the context as it was given to `observe`. More replacements than an action has rewards are refused. Whether `was`
        was learned in that context is known, and refused if not, where the likelihood keeps its rows (clicks, counts); linear
        rewards are kept as sums, which cannot tell: a `was` that was never learned leaves a belief that nobody observed.

        at: as it was given to `observe`, where rewards drift by the clock; without it the action's last reward is meant. What has
        been forgotten since is not replaced, and nobody is told.

        >>> import manyarms as ma
        >>> agent = ma.LinTS(ma.ActionPrior(actions=1000, mean=[0.0, 0.0], covariance=[[1.0, 0.0], [0.0, 1.0]]), seed=0)
        >>> agent.observe([0.5, -0.2], 7, 1.0)
        >>> agent.replace_reward([0.5, -0.2], 7, was=1.0, now=21.0)
        """
        with self._belief.learning:
            belief = self._belief.belief
            X, ids, single = _taken(belief, encoded(self._encoder, x), action)
            number = None if single else len(X)
            before, after = _rewards("was", was, number), _rewards("now", now, number)
            belief.likelihood.check(after)
            times = None if at is None else belief.times(at, len(X))
            self._belief.change(_correct, *belief.correction(X, ids, before, after), times)

    def advance(self, at: TimeLike) -> None:
        """It is that late now, though nothing was observed: what has grown old by the clock is forgotten.

        Decisions age what they read by themselves (`at` of `decide`); this is for discounting and windows, which change with rows
        alone otherwise, and after long pauses. Nothing, where nothing is forgotten.
        """
        with self._belief.learning:
            memory = self._belief.belief.memory
            if memory is None or at is None:
                Clock(counts=False).moment(as_times("at", at))  # refuses what is no time
                return
            self._belief.change(_pass, memory.clock.moment(at))

    def residuals(
        self, x: ContextLike, action: ActionId | ManyIds, reward: float | npt.ArrayLike, *, at: TimeLike = None
    ) -> Residuals:
        """How far rewards are from what is expected of them now, in standard deviations: for `ma.sequential.DriftAlarm`.

        Ask before they are given to `observe`, with the same arguments. Returns arrays of one number a row: z, standard normal if
        the model is right; the mean that was expected; and the share of a row's variance that is not noise.

        >>> import manyarms as ma
        >>> agent = ma.LinTS(ma.ActionPrior(actions=1000, mean=[0.0], covariance=[[3.0]]), ma.Linear(1.0), seed=0)
        >>> agent.residuals([1.0], 7, 4.0).z
        array([2.])
        """
        held = self._belief.enter()
        try:
            belief = held.belief
            X, ids, single = _taken(belief, encoded(self._encoder, x), action)
            rewards = _rewards("reward", reward, None if single else len(X))
            belief.likelihood.check(rewards)
            return residuals(belief, *belief.evidence(X, ids, rewards), belief.times(at, len(X)))
        finally:
            self._belief.leave(held)

    def add_actions(
        self,
        number: int | None = None,
        *,
        ids: Iterable[ActionId] | None = None,
        weights: npt.ArrayLike | None = None,
        covariance: npt.ArrayLike | None = None,
    ) -> AnyArray:
        """New actions at their prior; returns their ids. Nothing else changes.

        ids: what they are called, where the others have ids, too; without ids they continue the count. weights: a row of mixing
        weights for each (mixed effects), or its matrix W_a; number: how many, where neither ids nor rows tell. covariance: prior
        covariances, where every action has its own.
        """
        given = None if covariance is None else validate.as_floats("covariance", covariance)
        called = None if ids is None else listed_ids("ids", ids)
        if called is not None and number is None and weights is None:
            number = len(called)
        with self._belief.learning:
            belief = self._belief.belief
            rows, number, packed = belief.new_actions(weights, number, given)
            names = belief.catalogue.check_new_ids(called, number)
            new = self._belief.change(_add_actions, rows, number, packed, names)
        return new if names is None else names.named(new)

    def update_actions(self, actions: ActionId | ManyIds, *, weights: npt.ArrayLike) -> None:
        """Give actions other mixing weights: the belief is then the one that had known them all along, with the same rows.

        weights: a row for each (mixed effects), or its matrix W_a; of one action, its row. What the actions' own rewards have
        taught stays, and reaches the shared effects, and through them all other actions, by the new weights. Retired actions
        may be updated, too.

        All actions are grouped anew, in time that grows with the catalogue (a tenth of a second for 100,000 with distinct
        weights, two or three for a million): give many in one call.

        >>> import manyarms as ma
        >>> prior = ma.MixedEffectPrior([[1.0, 0.0], [0.0, 1.0]], [[0.0], [0.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0]])
        >>> agent = ma.meTS(prior, seed=0)
        >>> agent.observe([1.0], 0, 3.0)
        >>> agent.update_actions(1, weights=[1.0, 0.0])  # it turns out to be of the same kind
        >>> agent.posterior(1)[0].round(2)
        array([1.])
        """
        listed = [actions] if np.isscalar(actions) else actions
        with self._belief.learning:
            ids, rows = self._belief.belief.new_weights(listed, weights)
            if len(ids):
                self._belief.change(_update_actions, ids, rows)

    def retire(self, actions: ActionId | ManyIds) -> None:
        """Do not choose these any more, until they are reinstated. What they taught stays, and so do their ids.

        Rewards that come late are still learned: give them to `observe`. Like adding and reinstating, it costs microseconds an
        action, whatever the catalogue's size.
        """
        listed = [actions] if np.isscalar(actions) else actions
        with self._belief.learning:
            ids = self._belief.belief.catalogue.check("actions", cast(npt.ArrayLike, listed), unique=True)
            self._belief.change(_retire, ids)

    def reinstate(self, actions: ActionId | ManyIds) -> None:
        """Choose these again, which were retired: with all that is known of them, as if they had never been away."""
        listed = [actions] if np.isscalar(actions) else actions
        with self._belief.learning:
            ids = self._belief.belief.catalogue.check_retired("actions", cast(npt.ArrayLike, listed))
            self._belief.change(_reinstate, ids)

    # ---- keeping ------------------------------------------------------------------------------------------------------

    def reseed(self, seed: Seed = None) -> None:
        """Decide with random numbers of another seed from now on, counted from 0; what it knows stays.

        For processes that load one and the same agent: each would go on with the numbers that were saved, and all explore alike.
        """
        self._draws = NumberedDraws.seeded(seed)

    def copy(self) -> Agent:
        """An independent agent in the same state, numbered draws included."""
        return copy.deepcopy(self)


def _taken(belief: Belief, x: npt.ArrayLike, action: ActionId | ManyIds) -> tuple[Array, Ints, bool]:
    """Contexts and the actions taken in them, checked, and whether it was one.

    They lie in memory in one order, whatever came: sums over them are then the same to the last bit, on a twin and in a replay.
    """
    X, single = belief.observed_contexts(x, action)
    if single:
        ids = np.array([belief.catalogue.check_one("action", action, retired=True)])
    else:
        ids = belief.catalogue.check("action", cast(npt.ArrayLike, action), unique=False, retired=True)
        if len(ids) != len(X):
            raise InvalidInput("action", f"{len(ids)} actions", f"{len(X)}, one for each context")
    return np.ascontiguousarray(X), ids, single


def _rewards(name: str, rewards: float | npt.ArrayLike, number: int | None) -> Array:
    """So many rewards, checked; None: one, and what almost always comes, an ordinary float, by the short way."""
    if number is not None:
        return np.ascontiguousarray(validate.as_array(name, rewards, (number,)))
    if type(rewards) is float and -validate.LARGEST < rewards < validate.LARGEST:
        return np.array([rewards])
    return validate.as_array(name, rewards, ())[None]


# changes of a belief, by checked arguments


def _learn(belief: Belief, X: AnyArray, actions: Ints, rewards: AnyArray, times: AnyArray | None) -> None:
    if times is None:
        belief.learn(X, actions, rewards)
    else:
        belief.learn_at(X, actions, rewards, times)


def _correct(belief: Belief, X: AnyArray, actions: Ints, was: AnyArray, now: AnyArray, times: AnyArray | None) -> None:
    belief.correct_at((X, actions, was, now), times)


def _pass(belief: Belief, time: float) -> None:
    belief.pass_to(time)


def _add_actions(
    belief: Belief, rows: AnyArray | None, number: int, covariances: AnyArray | None, names: Actions | None
) -> Ints:
    return belief.add(rows, number, covariances, names)


def _update_actions(belief: Belief, ids: Ints, rows: AnyArray) -> None:
    belief.change_weights(ids, rows)


def _retire(belief: Belief, ids: Ints) -> None:
    belief.catalogue.retire(ids)


def _reinstate(belief: Belief, ids: Ints) -> None:
    belief.catalogue.reinstate(ids)


@storage.LOADERS.register("agent")
def _restore(spec: dict[str, storage.JSON], arrays: dict[str, AnyArray]) -> Agent:
    told = loose(spec)
    schema = Schema.from_state(told["schema"], under("schema/", arrays))
    belief, decision = restore_belief(told["belief"], arrays), restore_decision(told["decision"])
    agent = Agent(belief, decision, 0, str(told["name"]), schema.catalogue, schema.encoder)
    agent._draws = NumberedDraws.restored(told["draws"])
    version = validate.count("version", told["version"], least=0, most=MOST_COUNTED)
    agent._belief = SharedBelief(agent.belief, version)
    return agent


__all__ = ["Agent", "Seed"]
