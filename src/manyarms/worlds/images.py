"""Pictures as actions, one parameter for all of them: the setting of dTS's joint variant on CIFAR (thesis, Appendix B.6.4).

The thesis refers to Hong et al. (2022) for this setting and prints a table of relative regrets; neither the features, the
rewards, the number of pictures a round nor the priors of HierTS and LinTS are in it. This is the nearest that its words give:

- a task is a class. Each round offers K pictures of the test set, one of the task's class among them, and a good choice is a
  picture of that class;
- phi(x, a) is 1 and the leading principal components of picture a's pixels, each with unit variance over the training set, or
  1 and the last hidden layer of a small network that was trained on the offline pictures alone (`image_features`);
- an offline estimate is the parameter of a class, fitted to a part of the training pictures (`percent`), as earlier tasks
  would have left it. Resampling these pictures gives as many estimates as pre-training needs. Tasks come from the same
  classes again and again, so the task's own class is among them (`seen`); without it the few classes say little about
  where a further one lies, and with ten classes a prior from nine excludes it.

Two truths to choose from. "model": the mean reward is phi^T theta (or its logistic) with the parameter that fits the task's
class best on the whole training set, so that the best choice can be learned. "labels": the mean reward is `high` for a picture
of the task's class and `low` otherwise, which no linear function of principal components can be; every agent's regret keeps
growing then, whatever it knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, cast

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from manyarms._base import validate
from manyarms._base.typing import Array, Bools, Ints
from manyarms.errors import InvalidInput, UnknownAction
from manyarms.priors.gaussian import ActionPrior, HierarchicalPrior
from manyarms.worlds.base import Chosen, KnownMeans, RewardDistribution, RewardKind, WorldSeed, chosen_ids, streams
from manyarms.worlds.image_features import Features, PictureNetwork, principal_components, train_network
from manyarms.worlds.image_files import ImageSet, read_images

Truth = Literal["labels", "model"]
Kind = Literal["pca", "network"]
# pictures of other classes in a logistic fit: more change nothing visible
LOGISTIC_OTHERS = 2_000
NEWTON_STEPS = 8
ENOUGH = 1_000


class Images(KnownMeans):
    """K pictures a round, one parameter: which class is the good one is what an agent has to find out.

    An action is a place on offer. A context is the numbers of the K pictures there, (K,); `features` turns it into phi, (K, d):

        agent = ma.agents.jointTS(prior, world.actions, feature_map=world.features, context_shape=(world.actions,))

    data: "cifar100", "mnist" or "fashion-mnist", looked for in `folder` or under MANYARMS_DATA. dim: d, the constant included.
    percent: the part of the training pictures that offline estimates may use. seen: whether the task's class is among them.
    target: the task's class, at random if not given. features: "pca", "network" (trained here, on the offline pictures, which
    takes a few seconds and torch), or a network that was trained before, on `offline`.
    """

    def __init__(
        self,
        actions: int = 20,
        dim: int = 30,
        *,
        data: ImageSet = "cifar100",
        reward: str = "linear",
        truth: Truth = "model",
        noise: float = 0.3,
        percent: float = 25.0,
        seen: bool = True,
        high: float = 0.9,
        low: float = 0.1,
        target: int | None = None,
        features: Kind | PictureNetwork = "pca",
        seed: WorldSeed = 0,
        folder: str | Path | None = None,
    ) -> None:
        self.actions, self.dim = validate.count("actions", actions, least=2), validate.count("dim", dim, least=2)
        if reward not in ("linear", "logistic"):
            raise InvalidInput("reward", validate.describe(reward), "'linear' or 'logistic'")
        if truth not in ("labels", "model"):
            raise InvalidInput("truth", validate.describe(truth), "'labels' or 'model'")
        rewards, self.truth = RewardDistribution(cast(RewardKind, reward), noise), truth
        if not 0 < validate.not_negative("percent", percent) <= 100:
            raise InvalidInput("percent", percent, "a number above 0 and at most 100")
        self.high, self.low = validate.probability("high", high), validate.probability("low", low)
        if not 0 < self.low < self.high < 1:
            raise InvalidInput("high", f"high={high}, low={low}", "0 < low < high < 1")
        pictures = read_images(data, folder)
        if not isinstance(features, PictureNetwork):
            validate.one_of("features", features, ("pca", "network"))
        elif features.dim != self.dim:
            raise InvalidInput("features", f"a network of dimension {features.dim}", f"one of dim={self.dim}")
        self.provenance = pictures.provenance
        rng, _, _ = streams(seed)
        drawn = int(rng.integers(pictures.classes))
        self.target = drawn if target is None else validate.count("target", target, least=0)
        if self.target >= pictures.classes:
            raise InvalidInput("target", target, f"a class from 0 to {pictures.classes - 1}")
        self.seen = validate.flag("seen", seen)
        self._of_target = pictures.test_classes == self.target
        if not self._of_target.any() or self._of_target.all():
            raise InvalidInput(
                "target", self.target, "a class with pictures in the test set, and other classes as well"
            )
        self._offline = _part(pictures.train_classes, float(percent), rng)
        self._entropy = int(rng.integers(2**62))
        self._classes = [c for c in range(pictures.classes) if self.seen or c != self.target]
        self._labels = pictures.train_classes
        self._prepared: Features
        if isinstance(features, PictureNetwork):
            self._prepared = features.features(pictures)
        elif features == "network":
            self._prepared = train_network(pictures, self.offline, self.dim, self._entropy).features(pictures)
        else:
            self._prepared = principal_components(pictures, self.dim)
        super().__init__(rewards, seed)

    def __repr__(self) -> str:
        return f"Images(actions={self.actions}, dim={self.dim}, {self.likelihood}, {self.truth}; {self.provenance})"

    @property
    def kappa_x(self) -> float:
        """The largest ||phi||^2 of a picture that can be on offer."""
        return float(np.einsum("nd,nd->n", self._prepared.test, self._prepared.test).max())

    # ---- rounds -------------------------------------------------------------------------------------------------------

    def contexts(self, n: int) -> Array:
        """The next n offers: numbers of K test pictures each, (n, K), one of the task's class at a random place."""
        n, rng = validate.count("n", n, least=0), self._context_rng
        validate.room("n", n, 24 * self.actions, f"offers of {self.actions:,} pictures")
        good, other = np.flatnonzero(self._of_target), np.flatnonzero(~self._of_target)
        offers = rng.choice(other, size=(n, self.actions))
        offers[np.arange(n), rng.integers(self.actions, size=n)] = rng.choice(good, size=n)
        return offers.astype(np.float64)

    def features(self, x: npt.ArrayLike) -> Array:
        """phi of the pictures on offer: (K, d) for one context (K,), (n, K, d) for a batch."""
        return self._prepared.test[self._ids(x)]

    def optimal(self, contexts: npt.ArrayLike) -> tuple[Ints, Array]:
        """The best place of each offer (n, K), and its expected reward; of ties, the first."""
        ids = self._ids(contexts)
        if ids.ndim != 2:
            raise InvalidInput("contexts", f"shape {ids.shape}", f"an array of shape (n, {self.actions})")
        means = self._means[ids]
        best = means.argmax(axis=1)
        return best, means[np.arange(len(best)), best]

    def _best_mean(self, x: npt.ArrayLike) -> Array:
        return np.asarray(self._means[self._ids(x)].max(axis=-1))

    @cached_property
    def _means(self) -> Array:
        """The expected reward of every test picture."""
        if self.truth == "labels":
            return np.where(self._of_target, self.high, self.low)
        return self.rewards.mean(self._prepared.test @ self.theta)

    @cached_property
    def theta(self) -> Array:
        """The parameter that fits the task's class best on all training pictures: the truth, where `truth` is "model"."""
        return cast(Array, self._fits(np.ones(len(self._prepared.train), dtype=bool), [self.target], None)[0])

    def _ids(self, x: npt.ArrayLike) -> Ints:
        rows = validate.as_floats("x", x)
        if rows.ndim not in (1, 2) or rows.shape[-1] != self.actions:
            raise InvalidInput("x", f"shape {rows.shape}", f"numbers of {self.actions} pictures, or rows of them")
        ids = rows.astype(np.int64)
        if (ids != rows).any() or (ids < 0).any() or (ids >= len(self._of_target)).any():
            raise InvalidInput("x", "something else", f"numbers of pictures, from 0 to {len(self._of_target) - 1}")
        return ids

    def _mean(self, x: npt.ArrayLike, a: Chosen) -> Array:
        ids, places = self._ids(x), chosen_ids(a)
        if places.shape != ids.shape[:-1]:
            raise InvalidInput("a", f"shape {places.shape}", "one place for each offer")
        if ((places < 0) | (places >= self.actions)).any():
            raise UnknownAction("a", validate.describe(a), f"places from 0 to {self.actions - 1}")
        return np.asarray(self._means[np.take_along_axis(ids, places[..., None].astype(np.int64), axis=-1)[..., 0]])

    # ---- what is known beforehand -------------------------------------------------------------------------------------

    @property
    def offline(self) -> Bools:
        """Which training pictures a network for features may be trained on: the part, of the classes that may be known."""
        return self._offline & np.isin(self._labels, self._classes)

    def estimates(self, copies: int | None = None) -> Array:
        """Offline estimates of theta, (n, d): the classes' parameters, `copies` times with resampled pictures.

        The parameter of class c minimises the squared error (or the logistic loss) of rewards `high` on c and `low` on the
        others, weighted as if offers were played at random: 1 / K for c, plus a ridge as heavy as one picture of c. By
        default as many copies as give 1,000 estimates.
        """
        classes = self._classes
        copies = -(-ENOUGH // len(classes)) if copies is None else validate.count("copies", copies)
        rng = np.random.default_rng(self._entropy)
        return np.concatenate([self._fits(self._offline, classes, rng) for _ in range(copies)])

    def _fits(self, allowed: Bools, classes: Sequence[int], rng: np.random.Generator | None) -> Array:
        """Parameters of some classes, (len(classes), d), from the allowed training pictures; resampled where rng is given."""
        rows = np.flatnonzero(allowed)
        if rng is not None:  # within each class, so that none gets lost
            labels = self._prepared.labels[rows]
            rows = np.concatenate(
                [rng.choice(rows[labels == c], size=int((labels == c).sum())) for c in np.unique(labels)]
            )
        phi, labels = self._prepared.train[rows], self._prepared.labels[rows]
        fit = _least_squares if self.likelihood == "linear" else _logistic
        return fit(phi, labels, classes, 1 / self.actions, self.high, self.low)

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        found = self.estimates()
        return found.mean(axis=0), np.cov(found.T) + 1e-9 * np.eye(self.dim)

    def action_prior(self) -> ActionPrior:
        """The Gaussian with the mean and covariance of the offline estimates, for the one parameter."""
        return ActionPrior(1, *self._moments)

    def hierarchical_prior(self) -> HierarchicalPrior:
        """The same Gaussian as a shared mean and one parameter around it, half the covariance each.

        With a single parameter HierTS is LinTS under another name: only what its prior knows can tell them apart.
        """
        mean, covariance = self._moments
        return HierarchicalPrior(1, mean, covariance / 2, covariance / 2)

    def vague_prior(self) -> ActionPrior:
        """N(0, I / d): what an agent without offline data may assume, scores of about unit size."""
        return ActionPrior(1, np.zeros(self.dim), np.eye(self.dim) / self.dim)

    def vague_hierarchy(self) -> HierarchicalPrior:
        """A shared mean N(0, I / d) and a parameter around it, N(mean, I / d): HierTS without offline data.

        With a single parameter this is `vague_prior` with twice its variance.
        """
        vague = np.eye(self.dim) / self.dim
        return HierarchicalPrior(1, np.zeros(self.dim), vague, vague)


def _part(labels: Ints, percent: float, rng: np.random.Generator) -> Bools:
    """A random part of the training pictures, the same part of every class, two at least."""
    chosen = np.zeros(len(labels), dtype=bool)
    for c in range(int(labels.max()) + 1):
        members = np.flatnonzero(labels == c)
        chosen[rng.permutation(members)[: max(2, round(percent / 100 * len(members)))]] = True
    return chosen


def _least_squares(phi: Array, labels: Ints, classes: Sequence[int], share: float, high: float, low: float) -> Array:
    """Weighted ridge regressions, one a class, from the sums of every class."""
    d = phi.shape[1]
    total, sums, count = phi.T @ phi, phi.sum(axis=0), len(phi)
    out = np.empty((len(classes), d))
    for i, c in enumerate(classes):
        own = phi[labels == c]
        gram, own_sum, n = own.T @ own, own.sum(axis=0), len(own)
        left = share / n * gram + (1 - share) / (count - n) * (total - gram) + share / n * np.eye(d)
        right = high * share / n * own_sum + low * (1 - share) / (count - n) * (sums - own_sum)
        out[i] = np.linalg.solve(left, right)
    return out


def _logistic(phi: Array, labels: Ints, classes: Sequence[int], share: float, high: float, low: float) -> Array:
    """The same with the logistic loss, by Newton's method; of the other classes' pictures a random part is enough."""
    d = phi.shape[1]
    out = np.empty((len(classes), d))
    order = np.random.default_rng(0).permutation(len(phi))
    for i, c in enumerate(classes):
        own, others = phi[labels == c], phi[order[labels[order] != c][:LOGISTIC_OTHERS]]
        X = np.concatenate([own, others])
        weights = np.repeat([share / len(own), (1 - share) / len(others)], [len(own), len(others)])
        wanted = np.repeat([high, low], [len(own), len(others)])
        theta, ridge = np.zeros(d), share / len(own)
        for _ in range(NEWTON_STEPS):
            p = expit(X @ theta)
            slope = X.T @ (weights * (p - wanted)) + ridge * theta
            curve = (X * (weights * p * (1 - p))[:, None]).T @ X + ridge * np.eye(d)
            theta = theta - np.linalg.solve(curve, slope)
        out[i] = theta
    return out


__all__ = ["Images"]
