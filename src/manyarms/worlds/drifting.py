"""A world whose actions change from round to round, with exact dynamic regret.

    theta_a(t) = W_a m + delta_a(t),    m drawn once,    delta_a(t) ~ N(0, action_scale I) at every round t

and delta moves by the laws of `changes.py`. What a round's choice loses is measured against the best action of that very round:

    regret of a in x at t = max_b r_t(x, b) - r_t(x, a)

With dim = 1, independent actions and the constant context 1 it is the K-armed bandit whose arms are AR(1) processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, cast, get_args

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.best_action import BestAction
from manyarms._base.typing import Array, Ints
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.priors.gaussian import ActionPrior, HierarchicalPrior, MixedEffectPrior
from manyarms.worlds.base import (
    Chosen,
    Contexts,
    Cube,
    Pool,
    RewardDistribution,
    RewardKind,
    World,
    WorldSeed,
    chosen_ids,
    streams,
)  # fmt: skip
from manyarms.worlds.changes import Change
from manyarms.worlds.mixed_effect import FLOOR, mixing_weights

Structure = Literal["mixed", "shared", "independent"]


@dataclass(frozen=True, eq=False)
class CatalogueChange:
    """What an agent is told when a catalogue turns over.

    retired (n,) and added (n,): ids. weights (n, L): the new actions' mixing weights; None where the structure has none.
    covariance (n, d, d): of theta_a with everything shared integrated out, as in `action_prior`.
    """

    retired: Ints
    added: Ints
    weights: Array | None
    covariance: Array


class Drifting(World):
    """K actions that change as rounds go by; drawn anew for every seed, and moved by `advance`.

    structure: "mixed", theta_a around sum_l b_al psi_l with psi_l ~ N(0, effect_scale I) and the mixing weights of `MixedEffect`;
    "shared", around one mean of that law; "independent", around zero. effect_scale and action_scale are variances.
    changes: one law of change or several (`Wandering`, `Sudden`, `Seasons`, `Turnover`); none: nothing ever changes.
    source: of contexts, `Cube(dim)` unless given; `Pool([[1.0]])` with dim = 1 makes it a K-armed bandit.

    What changes does so on a stream of its own: worlds of one seed go the same way whatever is chosen in them. `theta` (K, d) and
    `weights` belong to the actions on offer now, whose ids are `ids` (K,): 0 to K - 1 as long as nothing is turned over.

    >>> from manyarms.worlds import Wandering
    >>> arms = Drifting(10, 1, structure="independent", changes=Wandering(half_life=693), source=Pool([[1.0]]), seed=0)
    >>> before = arms.theta
    >>> for _ in range(100):
    ...     arms.advance()
    >>> arms, bool((arms.theta == before).any())
    (Drifting(actions=10, dim=1, independent, Wandering, linear, round 100), False)
    """

    def __init__(
        self,
        actions: int,
        dim: int,
        *,
        changes: Change | Sequence[Change] = (),
        structure: Structure = "mixed",
        effects: int = 3,
        weights: str | npt.ArrayLike | None = None,
        reward: RewardKind = "linear",
        noise: float = 1.0,
        effect_scale: float = 3.0,
        action_scale: float = 1.0,
        source: Contexts | None = None,
        seed: WorldSeed = 0,
    ) -> None:
        K, d = validate.count("actions", actions), validate.count("dim", dim)
        validate.one_of("structure", structure, get_args(Structure))
        L = {"mixed": validate.count("effects", effects), "shared": 1, "independent": 0}[structure]
        if structure != "mixed" and weights is not None:
            raise InvalidInput(
                "weights", validate.describe(weights), f"None: the structure {structure!r} has no weights"
            )
        rewards = RewardDistribution(reward, noise)
        self.structure, self.effects = structure, L
        self.effect_scale = validate.positive("effect_scale", effect_scale)
        self.action_scale = validate.positive("action_scale", action_scale)
        self.changes = _changes(changes)
        source = Cube(d) if source is None else _source(source, d)
        validate.room("actions", K, 16 * (4 * d + L), f"actions of {d:,} numbers and {L:,} weights")
        root = seed if isinstance(seed, np.random.SeedSequence) else _entropy(seed)
        self._settings: dict[str, Any] = {
            "actions": K, "dim": d, "changes": self.changes, "structure": structure, "effects": max(L, 1), "weights": weights,
            "reward": reward, "noise": noise, "effect_scale": effect_scale, "action_scale": action_scale, "source": source,
            "seed": root,
        }  # fmt: skip
        self._rng, _, _ = streams(root)
        self.psi = np.sqrt(self.effect_scale) * self._rng.standard_normal((L, d))
        self._given = weights
        self.weights = self._draw_weights(K, first=True)
        self._first_weights = self.weights
        self._z = self._rng.standard_normal((K, d))
        self.round = 0
        self.ids: Ints = validate.owned(np.arange(K))
        self._row_of: Ints = self.ids  # by id; -1 for an action that has gone
        self._motions = [change.begin(K, d, self._rng) for change in self.changes]
        super().__init__(self._theta_now(), rewards, source, root)

    def __repr__(self) -> str:
        laws = ", ".join(type(change).__name__ for change in self.changes) or "no change"
        what = f"actions={self.actions}, dim={self.dim}, {self.structure}, {laws}, {self.likelihood}"
        return f"Drifting({what}, round {self.round})"

    # ---- time ---------------------------------------------------------------------------------------------------------

    def advance(self) -> CatalogueChange | None:
        """Go on to the next round; what was turned over, if anything was."""
        self.round += 1
        replaced = [
            rows for motion in self._motions if (rows := motion.step(self._z, self.round, self._rng)) is not None
        ]
        news = self._renumber(np.unique(np.concatenate(replaced))) if replaced else None
        if self.changes:
            self.theta = self._theta_now()
        return news

    def sudden(self, round: int) -> bool:
        """Whether something happens at once before this round: a sudden change, or a turnover."""
        round = validate.count("round", round, least=0)
        return any(change.sudden(round) for change in self.changes)

    def replay(self, seed: WorldSeed) -> Self:
        """The same world from its beginning, going the same way, with fresh contexts and rewards."""
        again = type(self)(**self._settings)
        _, again._context_rng, again._reward_rng = streams(seed)
        return again

    def _renumber(self, rows: Ints) -> CatalogueChange:
        """New actions in the place of those in `rows`: their numbers go on from the last one."""
        retired, added = self.ids[rows], np.arange(len(self._row_of), len(self._row_of) + len(rows))
        ids, row_of = self.ids.copy(), np.concatenate((self._row_of, rows))
        ids[rows], row_of[retired] = added, -1
        self.ids, self._row_of = validate.owned(ids), row_of
        if self.structure == "mixed":
            weights = self.weights.copy()
            weights[rows] = self._draw_weights(len(rows), first=False)
            self.weights = validate.owned(weights)
        new = self.weights[rows]
        variance = self.action_scale + self.effect_scale * np.einsum("nl,nl->n", new, new)
        covariance = variance[:, None, None] * np.eye(self._z.shape[1])
        return CatalogueChange(retired, added, new if self.structure == "mixed" else None, covariance)

    def _draw_weights(self, number: int, *, first: bool) -> Array:
        """Mixing weights (number, L); later actions of a world whose weights were given have those of one of the first."""
        if self.structure != "mixed":
            return validate.owned(np.ones((number, self.effects)))
        if not first and self._given is not None and not isinstance(self._given, str):
            return self._first_weights[self._rng.integers(len(self._first_weights), size=number)]
        return validate.owned(mixing_weights(self._given, number, self.effects, self._rng))

    def _theta_now(self) -> Array:
        theta: Array = np.sqrt(self.action_scale) * self._z
        theta += self.weights @ self.psi
        theta.flags.writeable = False
        return theta

    # ---- what an agent may know ---------------------------------------------------------------------------------------

    def prior(self) -> MixedEffectPrior | HierarchicalPrior | ActionPrior:  # type: ignore[override]
        """The prior of the actions that the world began with, which is right at every round."""
        if self.structure == "mixed":
            return self._mixed_prior()
        return self.hierarchical_prior() if self.structure == "shared" else self.action_prior()

    def action_prior(self) -> ActionPrior:
        """What is shared integrated out, action by action."""
        if self.structure == "mixed":
            return self._mixed_prior().marginal()
        variance = self.action_scale + (self.effect_scale if self.structure == "shared" else 0.0)
        return ActionPrior(self.actions, np.zeros(self.dim), variance * np.eye(self.dim))

    def hierarchical_prior(self) -> HierarchicalPrior:
        """One shared mean with the prior of an effect; next to none (a variance of 1e-8) where actions are independent."""
        shared = FLOOR if self.structure == "independent" else self.effect_scale
        return HierarchicalPrior(
            self.actions, np.zeros(self.dim), shared * np.eye(self.dim), self.action_scale * np.eye(self.dim)
        )

    def _mixed_prior(self) -> MixedEffectPrior:
        blocks = np.tile(self.effect_scale * np.eye(self.dim), (self.effects, 1, 1))
        zero = np.zeros((self.effects, self.dim))
        return MixedEffectPrior(self._first_weights, zero, blocks, self.action_scale * np.eye(self.dim))

    # ---- rounds -------------------------------------------------------------------------------------------------------

    def candidates(self, number: int) -> Ints:
        """The ids of `number` different actions that are on offer now, any alike, (number,)."""
        return self.ids[super().candidates(number)]

    def optimal(self, contexts: npt.ArrayLike) -> tuple[Ints, Array]:
        """The best action of this round for each row of `contexts` (n, d), and its expected reward; of ties, any."""
        rows, scores = self._best_now(self._rows(contexts))
        return self.ids[rows], self.rewards.mean(scores)

    def _best_mean(self, x: npt.ArrayLike) -> Array:
        return self.rewards.mean(self._best_now(np.atleast_2d(np.asarray(x, dtype=np.float64)))[1])

    def _best_now(self, X: Array) -> tuple[Ints, Array]:
        if len(X) > 1:
            return BestAction(self.theta)(X)
        # one context: theta lives for one round, and ordering the actions would cost more than one product
        scores = self.theta @ X[0] if len(X) else np.zeros(0)
        best = np.array([scores.argmax()] if len(X) else [], dtype=np.int64)
        return best, scores[best]

    def _score(self, x: npt.ArrayLike, a: Chosen) -> Array:
        """x^T theta_a(t): ids become the rows where these actions now are."""
        ids = chosen_ids(a)
        if not ((ids >= 0) & (ids < len(self._row_of))).all():
            raise UnknownAction("a", validate.describe(a), f"actions from 0 to {len(self._row_of) - 1}")
        rows = self._row_of[ids]
        if (rows < 0).any():
            gone = int(np.atleast_1d(ids)[np.atleast_1d(rows) < 0][0])
            raise UnknownAction("a", gone, f"an action that is on offer in round {self.round}")
        return super()._score(x, cast(Chosen, rows))


def _entropy(seed: object) -> np.random.SeedSequence:
    """A seed that can be used again also where it was None."""
    return np.random.SeedSequence(None if seed is None else validate.seed(seed))


def _changes(given: object) -> tuple[Change, ...]:
    """One law of change, or several, as a tuple."""
    several = [given] if isinstance(given, Change) else given
    if not isinstance(several, list | tuple):
        raise InvalidInput(
            "changes", validate.describe(given), "Wandering, Sudden, Seasons, Turnover, or a list of such"
        )
    return tuple(validate.instance("changes", one, Change, "Wandering, Sudden, Seasons or Turnover") for one in several)


def _source(source: object, dim: int) -> Contexts:
    """A source of contexts of the right length."""
    if not isinstance(source, Cube | Pool):
        raise InvalidInput("source", validate.describe(source), "a Cube or a Pool")
    length = source.dim if isinstance(source, Cube) else source.rows.shape[1]
    if length != dim:
        raise InvalidInput("source", f"contexts of length {length}", f"length {dim}, that of the actions")
    return source


__all__ = ["CatalogueChange", "Drifting", "Structure"]
