"""What agents and snapshots of them have in common: they decide and answer, and change nothing but the count of decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, Unpack, cast, overload

import numpy as np

from manyarms._base import storage, validate
from manyarms._base.explanation import Explanation
from manyarms._base.nested import prefixed
from manyarms._base.tables import Shown, Table
from manyarms._base.typing import (
    ActionContexts,
    AnyArray,
    Array,
    Columns,
    ContextLike,
    FrameLike,
    Ints,
    Matrix,
    Row,
    SomeArray,
    TimeLike,
    Vector,
)
from manyarms.agents.decisions import Decision, Propensity
from manyarms.agents.decisions.mixtures import WithUniform
from manyarms.agents.draws import NumberedDraws, Seed
from manyarms.agents.questions import Question, questions
from manyarms.agents.shared_belief import FrozenBelief, SharedBelief
from manyarms.beliefs import Belief
from manyarms.errors import InvalidInput
from manyarms.logs.actions import ActionId, Actions
from manyarms.logs.contexts import encoded
from manyarms.logs.encoding import Encoder
from manyarms.logs.filters import Filter
from manyarms.logs.schema import Schema
from manyarms.policies import DeterministicPolicy, EpsilonMixture, Policy, StreamedPolicy, UniformPolicy


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NumberedDecision(Shown):
    """A decision, and what makes it again: the draw's number and the version of the agent that made it.

    actions: what `decide` returns. draw: its number, None where the caller brought a generator. version: how many changes the
    agent had learned.
    """

    actions: ActionId | AnyArray
    draw: int | None
    version: int

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NumberedDecision):
            return NotImplemented
        same = (self.draw, self.version) == (other.draw, other.version)
        return same and np.array_equal(self.actions, other.actions)

    def __hash__(self) -> int:
        return hash((self.draw, self.version))


class Filters(TypedDict, total=False):
    """What `decide` takes beside the context and k."""

    candidates: Filter
    exclude: Filter
    action_contexts: ActionContexts | None
    rng: Seed
    draw: int | None
    at: TimeLike


class Decider(Shown):
    """A belief that is read, a decision rule and numbered draws. Threads may share it."""

    def __init__(
        self,
        belief: SharedBelief | FrozenBelief,
        decision: Decision,
        draws: NumberedDraws,
        name: str,
        encoder: Encoder | None = None,
    ) -> None:
        self._belief = belief
        self._draws = draws
        self._encoder = encoder
        self.decision = decision
        self.name = name

    def __repr__(self) -> str:
        held = self._belief.enter()
        try:
            catalogue = held.belief.catalogue
            return f"<{self.name}: {catalogue.alive:,} actions, {len(catalogue.played):,} played, d={held.belief.dim}>"
        finally:
            self._belief.leave(held)

    # ---- deciding -----------------------------------------------------------------------------------------------------

    @overload
    def decide(self, x: ContextLike | None = None, *, k: int, **options: Unpack[Filters]) -> AnyArray: ...
    @overload
    def decide(self, x: SomeArray, *, k: None = None, **options: Unpack[Filters]) -> ActionId | AnyArray: ...
    @overload
    def decide(  # type: ignore[overload-overlap]  # a text is a sequence of texts, too, but no column
        self, x: Row | Sequence[float] | Vector, *, k: None = None, **options: Unpack[Filters]
    ) -> ActionId: ...
    @overload
    def decide(
        self,
        x: Columns | FrameLike | Sequence[Row] | Sequence[Sequence[float]] | Sequence[Vector] | Matrix,
        *,
        k: None = None,
        **options: Unpack[Filters],
    ) -> AnyArray: ...
    @overload
    def decide(
        self, x: ContextLike | None = None, *, k: int | None = None, **options: Unpack[Filters]
    ) -> ActionId | AnyArray: ...

    def decide(
        self,
        x: ContextLike | None = None,
        *,
        candidates: Filter = None,
        exclude: Filter = None,
        k: int | None = None,
        action_contexts: ActionContexts | None = None,
        rng: Seed = None,
        draw: int | None = None,
        at: TimeLike = None,
    ) -> ActionId | AnyArray:
        """The action to take in context x, or the best k of them, best first.

        x: one context (d,), or a batch (n, d), each with a draw of its own; with an encoder also a mapping of columns, a row of a
        frame, a frame or a list of mappings. Returns an id, or arrays of ids of shape (k,), (n,) or (n, k): the catalogue's, or
        integers from 0 where there is none.

        candidates: only these; exclude: not these, among which unknown ones do no harm. In a batch each context may have its
        own: a list of n lists, a boolean matrix (n, K), or a SciPy sparse one.

        Every call takes the next draw number (`draws`), a batch one for all, and its random numbers follow from the seed and
        that number alone. draw: decide with this number again, which takes none. rng: a generator or seed in place of both.

        action_contexts: a context for each action in place of one for all, (m, d), so that action a scores z_a^T theta_a. Row
        i belongs to candidates[i]; without candidates there is a row for every action, by row (those of retired ones are not
        looked at). A batch is (n, m, d) with candidates that all contexts share, or with a list of n lists of candidates;
        these may differ in length, with a list of n arrays (m_i, d). x is not needed then: if given it must have as many
        contexts, and the scores do not depend on it. Learn with `observe(z_a, a, r)`. Cost O(m d^2), whatever the catalogue's
        size.

        at: the time of the decision, where rewards drift by the clock; by default, and at the earliest, the latest time known.
        """
        return self._choose(x, candidates, exclude, k, action_contexts, rng, draw, at=at)[0]

    def decide_numbered(
        self,
        x: ContextLike | None = None,
        *,
        candidates: Filter = None,
        exclude: Filter = None,
        k: int | None = None,
        action_contexts: ActionContexts | None = None,
        rng: Seed = None,
        draw: int | None = None,
        at: TimeLike = None,
    ) -> NumberedDecision:
        """`decide`, with what is needed to make the same decision again: its draw number and the agent's version."""
        return NumberedDecision(*self._choose(x, candidates, exclude, k, action_contexts, rng, draw, at=at))

    def _choose(
        self,
        x: ContextLike | None,
        candidates: Filter,
        exclude: Filter,
        k: int | None,
        action_contexts: ActionContexts | None,
        rng: Seed,
        draw: int | None,
        named: bool = True,
        at: TimeLike = None,
    ) -> tuple[ActionId | AnyArray, int | None, int]:
        """The actions, by their ids unless `named` says otherwise, the draw's number and the version."""
        held, numbered = self._belief.enter(), self._draws
        try:
            X = None if x is None else encoded(self._encoder, x)
            asked, single, number = questions(held.belief.at(at), X, candidates, exclude, action_contexts, k)
            names = held.belief.catalogue.names if named else None
            if rng is not None:
                _refuse_both(draw)
                generator = validate.seeded(rng, "rng")
                return _answer(self.decision, asked, single, number, k, generator, names), None, held.version
            if draw is not None:
                draw = validate.count("draw", draw, least=0)
            n = numbered.take() if draw is None else draw
            stream = numbered.decision(n)
            try:
                return _answer(self.decision, asked, single, number, k, stream.generator, names), n, held.version
            except BaseException:
                if draw is None:
                    numbered.give_back(n)  # nothing was decided: nothing has changed
                raise
            finally:
                numbered.release(stream)
        finally:
            self._belief.leave(held)

    def propensity(
        self,
        x: ContextLike | None,
        action: ActionId,
        *,
        candidates: Filter = None,
        exclude: Filter = None,
        k: int = 1,
        draws: int | None = None,
        action_contexts: ActionContexts | None = None,
        rng: Seed = None,
        draw: int | None = None,
        at: TimeLike = None,
    ) -> Propensity:
        """How likely `decide` is to choose `action` in context x (or with `action_contexts`) under the same filters.

        Exact for decisions that do not draw, for mixtures of them with uniform play, and for an ensemble given its draws; for
        Thompson sampling an estimate without bias, the mean over `draws` of the action's chance given what is drawn of the
        shared parameters, and it says so (`kind`, `draws`, `standard_error`). By default a few draws where they are that
        smooth, 1,000 for a decision that can only be tried out: docs/propensities.md has accuracy and cost. An action that
        the filters leave out has 0.

        The estimate's random numbers belong to a draw number, as those of decisions do, but are others: asking changes
        nothing and repeats nothing. draw: the decision's number, by default the next one's. rng: a generator or seed in place
        of it. Only a decision whose propensities are those given its draws (`Ensemble`) is asked with its own random numbers.
        at: the time of the decision, as in `decide`.
        """
        held, numbered = self._belief.enter(), self._draws
        try:
            encoded_x = None if x is None else encoded(self._encoder, x)
            asked, single, number = questions(held.belief.at(at), encoded_x, candidates, exclude, action_contexts, k)
            belief, X, offer = asked[0]
            if not single:
                name = "x" if action_contexts is None else "action_contexts"
                raise InvalidInput(name, f"a batch of {sum(len(q.X) for q in asked)}", "a single context")
            row = held.belief.catalogue.check_one("action", action)
            draws = self.decision.propensity_draws(belief) if draws is None else validate.count("draws", draws)
            if rng is not None:
                _refuse_both(draw)
                generator = validate.seeded(rng, "rng")
                return self.decision.propensity(belief, X[0], row, offer, number, draws, generator)
            n = numbered.following if draw is None else validate.count("draw", draw, least=0)
            stream = numbered.decision(n) if self.decision.from_draws else numbered.question(n)
            try:
                return self.decision.propensity(belief, X[0], row, offer, number, draws, stream.generator)
            finally:
                numbered.release(stream)
        finally:
            self._belief.leave(held)

    @property
    def draws(self) -> int:
        """The number that the next decision draws with: how many decisions have been numbered."""
        return self._draws.following

    @property
    def key(self) -> str:
        """What its random numbers follow from, together with the number of a draw: 128 bits made of the seed, in hexadecimal."""
        return self._draws.key.hex()

    # ---- what is known ------------------------------------------------------------------------------------------------

    @property
    def belief(self) -> Belief:
        """What it knows now. To look at, or to change by hand, is for one thread: `snapshot()` gives what stays as it is."""
        return self._belief.belief

    @property
    def version(self) -> int:
        """How many changes it has learned: calls of `observe`, `add_actions` and the like."""
        held = self._belief.enter()
        version = held.version
        self._belief.leave(held)
        return version

    @property
    def now(self) -> float | None:
        """The time that it knows of, in rounds or as given by `at`; None where nothing is forgotten."""
        held = self._belief.enter()
        now = held.belief.now
        self._belief.leave(held)
        return now

    @property
    def catalogue(self) -> Actions | None:
        """The ids of its actions, those of retired ones too; None where they are numbered from 0."""
        held = self._belief.enter()
        names = held.belief.catalogue.names
        self._belief.leave(held)
        return names

    @property
    def encoder(self) -> Encoder | None:
        """What makes contexts of rows of a table; None where contexts are arrays."""
        return self._encoder

    @property
    def schema(self) -> Schema:
        """The two together, which are saved with it."""
        return Schema(self._encoder, self.catalogue)

    def posterior(self, action: ActionId, *, at: TimeLike = None) -> tuple[Array, Array]:
        """Mean (d,) and covariance (d, d) of an action's parameter, the root integrated out; of a retired one, too.

        at: as of which time, as in `decide`.
        """
        held = self._belief.enter()
        try:
            ids = np.array([held.belief.catalogue.check_one("action", action, retired=True)])
            mean, covariance = held.belief.at(at).action_posterior(ids)
            return mean[0], covariance[0]
        finally:
            self._belief.leave(held)

    def explain(self, x: ContextLike, action: ActionId, *, at: TimeLike = None) -> Explanation:
        """What each feature of one context, the root and the action's own data add to the action's score, and how sure that is.

        x, at: as in `decide`; where actions have contexts of their own, that of this action. A retired action is explained, too.

        >>> import manyarms as ma
        >>> agent = ma.LinTS(ma.ActionPrior(actions=3, mean=[1.0, 0.0], covariance=[[1.0, 0.0], [0.0, 1.0]]), seed=0)
        >>> agent.observe([0.5, -0.2], 1, 2.0)
        >>> agent.explain([2.0, 1.0], 1).contributions.round(2)
        array([ 3.16, -0.23])
        """
        held = self._belief.enter()
        try:
            found = held.belief.at(at).explain(encoded(self._encoder, x), action)
        finally:
            self._belief.leave(held)
        return found.called(None if self._encoder is None else self._encoder.names)

    @property
    def dim(self) -> int:
        """d, the length of a context."""
        return self._belief.belief.dim

    @property
    def actions(self) -> int:
        """How many actions there are that are not retired."""
        held = self._belief.enter()
        number = held.belief.catalogue.alive
        self._belief.leave(held)
        return number

    @property
    def played(self) -> int:
        """How many different actions have been observed."""
        held = self._belief.enter()
        number = len(held.belief.catalogue.played)
        self._belief.leave(held)
        return number

    @property
    def nbytes(self) -> int:
        """Bytes that the belief holds, prior and derived tables included; an agent that threads share holds it twice."""
        held = self._belief.enter()
        try:
            return held.belief.nbytes
        finally:
            self._belief.leave(held)

    # ---- keeping ------------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """What it is now: decides and answers, learns nothing, and stays as it is whatever the agent learns.

        Taking one costs next to nothing. As long as it lives, its belief is held beside the agent's: the next change is made
        on a copy. Its decisions take their numbers from the same count as the agent's, so that no number is used twice.
        """
        return Snapshot(self._belief.frozen(), self.decision, self._draws, self.name, self._encoder)

    def save(self, folder: str | Path) -> None:
        """Write the whole agent to a folder, encoder and ids included.

        The next decision after `manyarms.load(folder)` is the same to the last bit.
        """
        held = self._belief.enter()
        try:
            schema, tables = Schema(self._encoder, held.belief.catalogue.names).state()
            spec = {
                "name": self.name,
                "belief": held.belief.spec(),
                "decision": {"kind": self.decision.kind, **self.decision.options()},
                "draws": self._draws.spec(),
                "version": held.version,
                "schema": schema,
            }
            arrays = held.belief.arrays() | prefixed("schema/", tables)
            storage.save(folder, "agent", cast("dict[str, storage.JSON]", spec), arrays)
        finally:
            self._belief.leave(held)

    def as_policy(self) -> Policy:
        """The agent as it is now, as a policy with known probabilities, encoder and ids included.

        Refused where its decision draws from its belief.
        """
        frozen = self.snapshot()
        policy = frozen._as_policy()
        policy.schema = frozen.schema
        if frozen.belief.per_action:
            policy.dim = frozen.belief.dim  # with one parameter for all a context is whatever its features are made of
        policy.training_rows = frozen.belief.training_rows
        return policy

    def _as_policy(self) -> StreamedPolicy:
        catalogue = self.belief.catalogue
        complete = catalogue.alive == catalogue.size
        kind, rule = self.decision.kind, self.decision
        if not rule.draws:
            return DeterministicPolicy(self._certain, catalogue.size)
        if kind == "uniform" and complete:
            return UniformPolicy(catalogue.size)
        if isinstance(rule, WithUniform) and complete:
            ruled = Snapshot(self._belief, rule.certain, self._draws, self.name)
            return EpsilonMixture(DeterministicPolicy(ruled._certain, catalogue.size), rule.epsilon)
        came = f"an agent that decides by {kind}" + ("" if complete else " and has retired actions")
        raise InvalidInput(
            "policy", came, "a policy, or an agent that decides greedily, pessimistically, by an index, or by "
            "epsilon-mixtures of these: only then are its probabilities known",
        )  # fmt: skip

    def _certain(self, X: Array) -> Ints:
        """A decision by rows in which nothing is drawn: it needs no number of its own."""
        return cast(Ints, self._choose(X, None, None, None, None, None, 0, named=False)[0])

    def _table(self) -> Table:
        from manyarms.agents.printing import agent_table

        held = self._belief.enter()
        try:
            return agent_table(self, held.belief, held.version)
        finally:
            self._belief.leave(held)


class Snapshot(Decider):
    """An agent as it was at one moment (`agent.snapshot()`): it decides and answers, can be saved, and never changes."""


def _answer(
    decision: Decision,
    asked: list[Question],
    single: bool,
    number: int,
    k: int | None,
    rng: np.random.Generator,
    names: Actions | None,
) -> ActionId | AnyArray:
    """The actions that a rule picks, in the shape that was asked for, by their ids where they have any."""
    if single and k is None:
        belief, X, offer = asked[0]
        action = int(decision.pick(belief, X, offer, number, rng)[0].actions(offer, rng)[0])
        return action if names is None else names[action]
    rows = np.concatenate([decision.choose(belief, X, offer, number, rng) for belief, X, offer in asked])
    if k is None:
        rows = rows[:, 0]
    if single:
        rows = rows[0]
    return rows if names is None else names.named(rows)


def _refuse_both(draw: int | None) -> None:
    if draw is not None:
        raise InvalidInput("draw", validate.describe(draw), "nothing beside `rng`, which replaces numbered draws")


__all__ = ["Decider", "NumberedDecision", "Snapshot"]
