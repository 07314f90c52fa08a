"""Movie recommendation with real ratings (thesis, Section 3.4.2).

A low-rank factorisation gives a vector to every user and every movie. Users are the contexts, movies the
actions, and rewards are drawn around x_j^T theta_a; the mixed-effect structure, which nobody knows, is
learned by a Gaussian mixture of the movies.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.priors.gaussian import ActionPrior, HierarchicalPrior, MixedEffectPrior
from manyarms.priors.structure import Factors, factorise, mixture
from manyarms.worlds.base import Pool, RewardDistribution, RewardKind, World, WorldSeed, streams
from manyarms.worlds.datasets import Ratings, RatingSet, read_ratings

# thesis, Section 3.4.2: three quarters of a movie's variance come from its effects
EFFECT_SHARE = 0.75
# the factorisation and the mixture are one fixed preparation, the same in every run
SWEEPS, RIDGE, PREPARATION_SEED = 20, 1.0, 0


@dataclass(frozen=True, eq=False)
class MovieCatalogue:
    """What is learned once from a data set: vectors of all users and movies, and the movies' structure."""

    users: Array
    movies: Array
    prior: MixedEffectPrior
    mean: Array  # of the vectors that the structure was learned from


class MovieLens(World):
    """K movies drawn at random, users as contexts.

    data: "ml-1m" or "ml-100k", looked for in `folder` or under MANYARMS_DATA. Movies without any rating have no
    vector and cannot be drawn. `movies` has the drawn movies' own ids; `provenance` says what the data are.
    learned_from: of how many movies, always the same ones, the priors are learned (None, or more than there are: all).
    """

    def __init__(
        self,
        actions: int,
        dim: int,
        *,
        reward: RewardKind = "linear",
        noise: float = 0.5,
        effects: int = 5,
        seed: WorldSeed = 0,
        folder: str | Path | None = None,
        data: RatingSet = "ml-1m",
        learned_from: int | None = None,
    ) -> None:
        actions, dim = validate.count("actions", actions), validate.count("dim", dim)
        self.effects = validate.count("effects", effects)
        rewards = RewardDistribution(reward, noise)
        ratings = read_ratings(data, folder)
        if actions > len(ratings.item_ids):
            raise InvalidInput("actions", actions, f"at most {len(ratings.item_ids)}, the number of rated movies")
        learned_from = None if learned_from is None else validate.count("learned_from", learned_from)
        self.catalogue = catalogue(ratings, dim, self.effects, learned_from)
        self.provenance = ratings.provenance
        rng, _, _ = streams(seed)
        self._drawn = rng.choice(len(ratings.item_ids), size=actions, replace=False)
        self.movies = ratings.item_ids[self._drawn]
        super().__init__(self.catalogue.movies[self._drawn], rewards, Pool(self.catalogue.users), seed)

    def __repr__(self) -> str:
        return f"MovieLens(actions={self.actions}, dim={self.dim}, {self.likelihood}; {self.provenance})"

    def prior(self) -> MixedEffectPrior:
        """Cluster centres as effect means, membership probabilities as weights (thesis, Section 3.4.2).

        Sigma_Psi = 0.75 diag(v) for every effect, Sigma_0 = 0.25 diag(v), v the variances of all movie vectors.
        """
        whole = self.catalogue.prior
        return MixedEffectPrior(
            whole.weights[self._drawn], whole.effect_mean, whole.effect_covariance, whole.action_covariance
        )

    def action_prior(self) -> ActionPrior:
        """N(mu, diag(v)) for every movie, mu and v the mean and variances of all movie vectors (thesis, Section 3.4.2)."""
        return ActionPrior(self.actions, self.catalogue.mean, self._spread())

    def hierarchical_prior(self) -> HierarchicalPrior:
        """One shared mean, N(mu, 0.75 diag(v)), and movies around it with 0.25 diag(v).

        The thesis does not print HierTS's prior here; this one has the marginals of `action_prior` and the
        split of `prior`, where the centre of an arbitrary cluster would be far from most movies.
        """
        spread = self._spread()
        mean = self.catalogue.mean
        return HierarchicalPrior(self.actions, mean, EFFECT_SHARE * spread, (1 - EFFECT_SHARE) * spread)

    def _spread(self) -> Array:
        # the mixture's floor is in it, so that the three priors agree to the last digit
        return self.catalogue.prior.action_covariance / (1 - EFFECT_SHARE)


@lru_cache(maxsize=8)
def factors(ratings: Ratings, dim: int) -> Factors:
    """User and movie vectors: alternating least squares on the observed entries, nothing centred."""
    shape = (len(ratings.user_ids), len(ratings.item_ids))
    return factorise(
        ratings.users,
        ratings.items,
        ratings.ratings,
        dim,
        sweeps=SWEEPS,
        ridge=RIDGE,
        seed=PREPARATION_SEED,
        shape=shape,
    )


@lru_cache(maxsize=16)
def catalogue(ratings: Ratings, dim: int, effects: int, learned_from: int | None = None) -> MovieCatalogue:
    """Vectors and structure of a data set; `ratings` is itself shared, so a process learns each setting once."""
    learned = factors(ratings, dim)
    some = np.arange(len(learned.items))
    if learned_from is not None and validate.count("learned_from", learned_from) < len(some):
        some = np.sort(np.random.default_rng(PREPARATION_SEED).choice(some, size=learned_from, replace=False))
    prior = mixture(
        learned.items,
        effects,
        seed=PREPARATION_SEED,
        spread="marginal",
        effect_share=EFFECT_SHARE,
        learned_from=some,
    )
    for shared in (learned.users, learned.items):
        shared.flags.writeable = False
    return MovieCatalogue(learned.users, learned.items, prior, learned.items[some].mean(axis=0))


__all__ = ["MovieCatalogue", "MovieLens", "catalogue", "factors"]
