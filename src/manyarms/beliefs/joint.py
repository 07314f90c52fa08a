"""One parameter shared by all actions: R | x, a ~ p(. | phi(x, a)^T theta) (thesis, Section 4.2.2).

theta is the one leaf of any root. A context is the matrix of the actions' features, phi(x, 1), ..., phi(x, K), or whatever a
feature map turns into it. Scores of different actions are dependent, so theta itself is drawn, once per context, and one product
gives them all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from manyarms._base import linalg, validate
from manyarms._base.explanation import Explanation
from manyarms._base.nested import under
from manyarms._base.typing import AnyArray, Array, Ints, Spec, loose
from manyarms.beliefs import explaining, joint_chances
from manyarms.beliefs.actions.all_played import AllPlayed
from manyarms.beliefs.actions.catalogue import ActionCatalogue, Offer, Place
from manyarms.beliefs.belief import BELIEFS, Belief, Rounds, check_contexts, restored_parts
from manyarms.beliefs.chances import Chances
from manyarms.beliefs.leaves import Leaves
from manyarms.beliefs.likelihoods.base import Likelihood
from manyarms.beliefs.roots import Root, restore_root
from manyarms.errors import InvalidInput
from manyarms.logs.actions import Actions

FeatureMap = Callable[[Array], Array]
SLOT = 16  # bytes that an action takes where its features come with the context


@BELIEFS.register("joint")
class JointBelief(Belief):
    """A belief about one parameter: a two-level belief whose only action it is, seen through features."""

    per_action = False

    def __init__(
        self,
        root: Root,
        leaves: Leaves,
        likelihood: Likelihood,
        actions: int,
        feature_map: FeatureMap | None = None,
        context_shape: tuple[int, ...] | None = None,
    ) -> None:
        """`leaves` of the one parameter, Leaves(mixing, covariance, 1); `actions`: how many share it."""
        super().__init__(root, leaves, likelihood)
        if leaves.catalogue.size != 1:
            raise InvalidInput("leaves", f"{leaves.catalogue.size} parameters", "the leaves of a single parameter")
        if feature_map is not None and not callable(feature_map):
            raise InvalidInput("feature_map", validate.describe(feature_map), "a function of a context, or None")
        if (feature_map is None) != (context_shape is None):
            came = validate.describe(context_shape)
            raise InvalidInput("context_shape", came, "a shape together with a feature map, or neither")
        shape = None if context_shape is None else _shape(context_shape)
        actions = validate.count("actions", actions)
        self._check_room("actions", actions, feature_map is not None)
        self._all = AllPlayed(actions)  # every action is known through its features, so that none waits to be played
        self.feature_map = feature_map
        self.context_shape = shape or (self._all.size, self.dim)

    def _check_room(self, name: str, actions: int, mapped: bool) -> None:
        """Refuses more actions than there is memory for: a feature map makes rows for all of them, callers may list a few."""
        each = 8 * (self.dim + 2) if mapped else SLOT
        validate.room(name, actions, each, "actions: a context is a row of features for each")

    @property
    def catalogue(self) -> ActionCatalogue:
        return self._all

    def contexts(self, x: npt.ArrayLike) -> tuple[Array, bool]:
        return check_contexts(x, self.context_shape)

    def observed_contexts(self, x: npt.ArrayLike, action: object) -> tuple[Array, bool]:
        """Contexts as ever, or only the features phi(x, a) of the actions taken: (d,), or (n, d) for n actions."""
        X, one = validate.as_floats("x", x), isinstance(action, int | np.integer | str)
        if self.feature_map is None and X.ndim == (1 if one else 2):
            return check_contexts(X, (self.dim,))
        return self.contexts(X)

    def features(self, x: Array) -> Array:
        """phi(x, a) for all actions, (K, d)."""
        if self.feature_map is None:
            return x
        # of a copy: the map may write on what it gets
        return validate.as_array("feature_map", self.feature_map(x.copy()), (self._all.size, self.dim))

    # ---- learning -----------------------------------------------------------------------------------------------------

    def evidence(self, X: Array, actions: Ints, rewards: Array) -> Rounds:
        """Rows of the one parameter: the features of the actions taken, as the feature map has them now."""
        phi = X
        if X.shape[1:] == self.context_shape:
            phi = np.stack([self.features(x)[a] for x, a in zip(X, actions.tolist(), strict=True)])
        return super().evidence(phi, np.zeros(len(phi), dtype=np.int64), rewards)

    # ---- what decisions ask -------------------------------------------------------------------------------------------

    def _parameter(self, M: Array) -> tuple[Array, Array]:
        """Conditional mean (n, d) given the roots M (n, p), and factor (d, d), of theta."""
        leaves = self.leaves
        only = np.zeros(1, dtype=np.int64)
        S = leaves.packing.unpack(leaves.posterior(only)[0][0]) if len(leaves.counts) else leaves.covariance
        return self._mean(M), linalg.half(S)

    def _mean(self, M: Array) -> Array:
        """Conditional mean (n, d) of theta given the roots M (n, p)."""
        leaves, ids = self.leaves, np.zeros(1, dtype=np.int64)
        c = leaves.posterior(ids)[1][0] if len(leaves.counts) else np.zeros(self.dim)
        if self.root.known:
            return np.broadcast_to(c if len(leaves.counts) else leaves.mixing.apply(ids, M[0])[0], (len(M), self.dim))
        return c + np.stack([leaves.mixing.apply(ids, m)[0] for m in M]) @ self._pull().T

    def _pull(self) -> Array:
        """(d, d): how the mean of theta moves with W m."""
        leaves = self.leaves
        return leaves.pulls(np.zeros(1, dtype=np.int64))[0] if len(leaves.counts) else np.eye(self.dim)

    def draw_scores(
        self, X: Array, offer: Offer, rng: np.random.Generator, best: int | None = None
    ) -> tuple[Array, Array]:
        barred = offer.barred if offer.slots is None else None
        return self._draw(self._offered(X, offer), rng, barred), np.empty((len(X), 0))

    def played_moments(self, X: Array, offer: Offer, *, spread: bool) -> tuple[Array, Array]:
        return self.listed_moments(self._offered(X, offer), offer.ids_of_slots(), spread=spread)

    def _offered(self, X: Array, offer: Offer) -> Array:
        """Features (n, m, d) of the actions offered."""
        phi = X if self.feature_map is None else np.stack([self.features(x) for x in X])
        return phi if offer.slots is None else phi[:, offer.slots]

    def draw_listed(self, Z: Array, ids: Ints, rng: np.random.Generator) -> Array:
        return self._draw(Z, rng)

    @property
    def propensity_draws(self) -> int:
        return 256

    def log_chances(self, x: Array, offer: Offer, place: Place, k: int, n: int, rng: np.random.Generator) -> Chances:
        """The same, given n draws of all but one direction of theta (joint_chances.py)."""
        Z, mine = self._offered(x[None], offer)[0], place.position
        if offer.slots is None and len(offer.barred):
            Z, mine = np.delete(Z, offer.barred, axis=0), mine - int(np.searchsorted(offer.barred, mine))
        return self.listed_log_chances(Z, offer.ids_of_slots(), mine, k, n, rng)

    def listed_log_chances(self, Z: Array, ids: Ints, place: int, k: int, n: int, rng: np.random.Generator) -> Chances:
        if self.root.known or self.root.normal:  # theta is one normal vector, the root integrated out
            mean, covariance = self.action_posterior(np.zeros(1, dtype=np.int64))
            means, factor = np.broadcast_to(mean[0], (n, self.dim)), linalg.half(covariance[0])
        else:
            means, factor = self._parameter(self.root.draw(rng, n))
        return joint_chances.along_a_line(Z, place, means, factor, k, rng)

    def _draw(self, Z: Array, rng: np.random.Generator, barred: Ints | None = None) -> Array:
        mean, factor = self._parameter(self.root.draw(rng, len(Z)))
        theta = mean + rng.standard_normal(mean.shape) @ factor.T
        return _untied(np.matmul(Z, theta[:, :, None])[:, :, 0], Z, theta, rng, barred)

    def listed_moments(self, Z: Array, ids: Ints, *, spread: bool) -> tuple[Array, Array]:
        if not spread:  # no factor of the covariance, which is what costs
            return Z @ self._mean(self.root.mean()[None])[0], np.zeros(Z.shape[:2])
        mean, covariance = self.action_posterior(np.zeros(1, dtype=np.int64))
        return Z @ mean[0], np.einsum("nkd,nkd->nk", Z @ covariance[0], Z)

    def unplayed_moments(self, x: Array, offer: Offer, *, spread: bool) -> tuple[Array, Array]:
        return np.zeros(len(offer.counts)), np.zeros(len(offer.counts))

    def action_posterior(self, ids: Ints) -> tuple[Array, Array]:
        """Mean and covariance of the one parameter, the same for every id."""
        ids = np.zeros(len(ids), dtype=np.int64)
        mean, factor = self._parameter(self.root.mean()[None])
        covariance = factor @ factor.T
        if not self.root.known:
            leaves = self.leaves
            pulled = np.stack([leaves.mixing.lift(0, row) for row in self._pull()]) @ self.root.factor()
            covariance = covariance + pulled @ pulled.T
        return np.repeat(mean, len(ids), axis=0), np.repeat(covariance[None], len(ids), axis=0)

    def _explained(self, x: Array, action: int) -> Explanation:
        phi = self.features(x)[action] if x.shape == self.context_shape else x
        return explaining.of_two_levels(self.root, self.leaves, phi, 0, self._score_is)

    def __deepcopy__(self, memo: dict[int, Any]) -> JointBelief:
        memo[id(self.feature_map)] = self.feature_map  # the caller's: it may belong to what cannot be copied
        twin = memo[id(self)] = type(self).__new__(type(self))
        twin.__dict__.update({name: copy.deepcopy(part, memo) for name, part in self.__dict__.items()})
        return twin

    def new_actions(
        self, weights: object, number: int | None, covariance: Array | None
    ) -> tuple[Array | None, int, Array | None]:
        """How many: they are known by the features that come with them, and need nothing else."""
        if self.feature_map is not None:
            came = "new ones where a feature map makes the features"
            raise InvalidInput("actions", came, "a new agent: the map fixes the number of actions")
        for name, value in (("weights", weights), ("covariance", covariance)):
            if value is not None:
                raise InvalidInput(name, validate.describe(value), "nothing: actions are known by their features")
        added = validate.count("number", number)
        self._all.check_new(added, SLOT)
        return None, added, None

    def add(self, rows: Array | None, number: int, covariances: Array | None, names: Actions | None = None) -> Ints:
        new = self._all.add(number, None, names)
        self.context_shape = (self._all.size, self.dim)
        return new

    # ---- state --------------------------------------------------------------------------------------------------------

    def spec(self) -> Spec:
        if self.feature_map is not None:
            raise InvalidInput(
                "feature_map", "a function", "contexts that are feature matrices: functions cannot be saved"
            )
        return {**super().spec(), "actions": self._all.size}

    def arrays(self) -> dict[str, AnyArray]:
        return {**super().arrays(), "retired": self._all.retired_ids()}

    @classmethod
    def restored(cls, spec: Spec, arrays: dict[str, AnyArray]) -> JointBelief:
        told = loose(spec)
        root = restore_root(told["root"], under("root.", arrays))
        belief = cls(root, *restored_parts(told, arrays), told["actions"])
        belief._restore_rows(arrays)
        belief.catalogue.retire(belief.catalogue.check("retired", arrays["retired"], unique=True))
        return belief._restore_memory(told, arrays)


def _untied(scores: Array, Z: Array, theta: Array, rng: np.random.Generator, barred: Ints | None) -> Array:
    """Scores z^T theta (n, m) of features Z (n, m, d) and draws theta (n, d), the best of which is one action.

    Actions with the same features have the same score, up to the rounding of the product; of those that share the best one, any
    alike is put ahead. `barred` ones cannot be chosen.
    """
    allowed = scores
    if barred is not None and len(barred):
        allowed = scores.copy()
        allowed[:, barred] = -np.inf
    each = np.arange(len(scores))
    top = allowed.argmax(axis=1)
    slack = 2 * theta.shape[1] * np.finfo(float).eps * np.abs(Z[each, top] * theta).sum(axis=1)
    near = allowed >= (allowed[each, top] - slack)[:, None]
    for i in np.flatnonzero(np.count_nonzero(near, axis=1) > 1).tolist():
        ids = np.flatnonzero(near[i])
        tied = ids[(Z[i, ids] == Z[i, top[i]]).all(axis=1)]
        if len(tied) > 1:
            scores[i, tied[rng.integers(len(tied))]] = np.nextafter(scores[i, top[i]], np.inf)
    return scores


def _shape(value: object) -> tuple[int, ...]:
    """The shape of a context, checked."""
    if not isinstance(value, tuple | list) or not value:
        raise InvalidInput("context_shape", validate.describe(value), "a tuple of lengths, at least one")
    return tuple(validate.count("context_shape", length) for length in value)


__all__ = ["FeatureMap", "JointBelief"]
