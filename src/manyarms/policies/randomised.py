"""Policies of randomised parameters: theta_a ~ N(mu_a, sigma^2 I), independent over actions.

    GaussianPolicy      plays the a with the largest h^T theta_a                 pi(a|x) = P(h^T theta_a is the largest)
    MixedLogitPolicy    plays from the softmax of the scores h^T theta_a         pi(a|x) = E[softmax(h^T theta)_a]

with h = enc(x) (thesis, Appendix E.3.2). Both are linear in the law of theta, which is what PAC-Bayesian bounds ask of a policy,
and the price of the law is its divergence from a prior's, `gaussian_kl`. Since h^T theta_a ~ N(h^T mu_a, sigma^2 ||h||^2), one
normal an action stands for l of them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from manyarms._base import validate
from manyarms._base.top_k import top_k_by_rows
from manyarms._base.typing import AnyArray, Array, Ints
from manyarms.errors import InvalidInput
from manyarms.policies import normal_choice
from manyarms.policies.base import POLICIES, ROWS, PolicyRows, action_blocks, row_blocks
from manyarms.policies.encoders import ContextEncoder
from manyarms.policies.mixed_logit import MixedLogitRows, Noise
from manyarms.policies.softmax import LinearScores, OfLinearScores

SIGMAS = 1e-50, 1e50  # scores over any such sigma are finite, and so are squares of its quotients
SQUARED = 1e150  # the square of what is below is finite, and the square of what is above one over it is not 0
LARGEST_SCALE = 1e300


def gaussian_kl(mu: npt.ArrayLike, sigma: float, mu0: npt.ArrayLike, sigma0: float) -> float:
    """KL(N(mu, sigma^2 I) || N(mu0, sigma0^2 I)), exactly:

        ||mu - mu0||^2 / (2 sigma0^2) + (n / 2) (sigma^2 / sigma0^2 - 1 - log(sigma^2 / sigma0^2)),    n numbers in mu.

    mu0 has mu's shape, or is one number for all. The thesis bounds it, for sigma <= sigma0, by leaving out the negative
    sigma^2 / sigma0^2 - 1 (thesis, Appendix E.3.3). Gumbel noise that both laws share adds nothing.

    >>> gaussian_kl([[1.0, 0.0]], 1.0, 0.0, 1.0)
    0.5
    """
    mean, prior = validate.as_floats("mu", mu), validate.as_floats("mu0", mu0)
    if prior.ndim and prior.shape != mean.shape:
        raise InvalidInput("mu0", f"shape {prior.shape}", f"the shape {mean.shape} of mu, or one number")
    scale = _sigma("sigma0", sigma0)
    log_ratio = 2 * math.log(_sigma("sigma", sigma) / scale)
    apart = (mean - prior).ravel() / scale
    return 0.5 * float(apart @ apart) + 0.5 * mean.size * (math.expm1(log_ratio) - log_ratio)


def _sigma(name: str, value: float) -> float:
    sigma = validate.positive(name, value)
    if not SIGMAS[0] <= sigma <= SIGMAS[1]:
        raise InvalidInput(name, value, f"a number from {SIGMAS[0]:g} to {SIGMAS[1]:g}")
    return sigma


def _lengths(h: AnyArray) -> Array:
    """||h||, (b,)."""
    lengths = np.asarray(np.sqrt(np.einsum("bl,bl->b", h, h, dtype=np.float64)))
    far = np.flatnonzero(~((lengths > 1 / SQUARED) & (lengths < SQUARED)))
    if len(far):  # squares may overflow, or vanish: over the largest entry they do neither
        largest = np.abs(h[far]).max(axis=1).astype(np.float64)
        shares = h[far] / np.where(largest > 0, largest, 1.0)[:, None]
        lengths[far] = largest * np.sqrt(np.einsum("bl,bl->b", shares, shares))
    return lengths


class _RandomisedPolicy(OfLinearScores):
    """What the two families have in common: mu, sigma and an encoder."""

    def __init__(self, actions: npt.ArrayLike, sigma: float, encoder: ContextEncoder | None) -> None:
        super().__init__(actions, 1.0, encoder)
        self.sigma = _sigma("sigma", sigma)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(actions={self.action_count}, dim={self.dim}, sigma={self.sigma:g})"

    def kl(self, mu0: npt.ArrayLike, sigma0: float) -> float:
        """The divergence of the law of the parameters from N(mu0, sigma0^2 I)."""
        return gaussian_kl(self.actions, self.sigma, mu0, sigma0)

    def sample_rows(self, X: npt.ArrayLike, rng: int | np.random.Generator | None = None) -> Ints:
        """One action for every context, (n,): the one whose drawn score is the largest."""
        contexts, generator = self._contexts(X), validate.seeded(rng)

        def drawn(part: slice) -> Iterator[Array]:
            h = self._vectors(contexts[part])
            for first, last in action_blocks(self.action_count):
                yield self._drawn(self._linear.scores(h, first, last), h, generator)

        return top_k_by_rows(len(contexts), 1, drawn)[0][:, 0]

    def _vectors(self, X: Array) -> AnyArray:
        """What scores are formed of, (b, l)."""
        return self._linear.scaled(X)

    @abstractmethod
    def _drawn(self, scores: AnyArray, h: AnyArray, rng: np.random.Generator) -> Array:
        """Scores (b, k) of h (b, l) with their noise."""


# ---- Gaussian


class _GaussianRows(PolicyRows):
    """Probabilities by quadrature; the product over all actions is formed when the first probability is asked for."""

    def __init__(self, linear: LinearScores, unit: AnyArray, sigma: float, nodes: int) -> None:
        self._linear, self._unit, self._sigma, self._nodes = linear, unit, sigma, nodes
        self._actions = len(linear.weights)
        self.total = np.ones(len(unit))  # up to the tolerance
        self._top: Array | None = None
        self._best: Ints = np.zeros(len(unit), dtype=np.int64)  # whose score that is
        self._at: Array = np.empty((len(unit), 0))
        self._log_weights = self._at
        self._kept: tuple[int, int, Array] | None = None

    def score(self, first: int, last: int) -> Array:
        """The most probable action is the one with the largest mean."""
        return self._linear.scores(self._unit, first, last)

    def mass(self, first: int, last: int) -> Array:
        self._prepare()
        return normal_choice.masses(self._at, self._log_weights, self._gaps(first, last))

    def mass_at(self, ids: Ints) -> Array:
        self._prepare()
        # the largest score is formed anew beside these: a product in blocks rounds otherwise than one of single actions, and a
        # small sigma would make a gap of the difference
        scores = self._linear.scores_at(self._unit, np.hstack([self._best[:, None], ids]))
        gaps = np.maximum(scores[:, :1] - scores[:, 1:], 0.0) / self._sigma
        return normal_choice.masses(self._at, self._log_weights, gaps)

    def only(self, index: Ints) -> PolicyRows:
        out = _GaussianRows(self._linear, self._unit[index], self._sigma, self._nodes)
        out._top, out._at, out._log_weights = self._prepare()[index], self._at[index], self._log_weights[index]
        out._best = self._best[index]
        return out

    def _prepare(self) -> Array:
        """Three passes over the scores: the largest of them, the ends, and the products at the nodes between."""
        if self._top is None:
            blocks = list(action_blocks(self._actions))
            top = np.full(len(self._unit), -np.inf)
            for first, last in blocks:
                scores = self.score(first, last)
                place = scores.argmax(axis=1)
                largest = np.take_along_axis(scores, place[:, None], axis=1)[:, 0]
                self._best[largest > top] = (first + place)[largest > top]
                np.maximum(top, largest, out=top)
            self._top = top
            counts = sum(normal_choice.gap_counts(self._gaps(first, last)) for first, last in blocks)
            self._at, step = normal_choice.midpoints(*normal_choice.ends(np.asarray(counts)), self._nodes)
            self._log_weights = np.broadcast_to(np.log(step)[:, None], self._at.shape).copy()
            for first, last in blocks:
                self._log_weights += normal_choice.log_products(self._at, self._gaps(first, last))
        return self._top

    def _gaps(self, first: int, last: int) -> Array:
        """How far scores lie below the largest, in standard deviations; the latest block is kept."""
        assert self._top is not None
        if self._kept is None or self._kept[:2] != (first, last):
            self._kept = first, last, (self._top[:, None] - self.score(first, last)) / self._sigma
        return self._kept[2]


@POLICIES.register("gaussian")
class GaussianPolicy(_RandomisedPolicy):
    """Plays the action with the largest h^T theta_a, theta_a ~ N(mu_a, sigma^2 I) drawn anew at every decision.

        pi(a|x) = integral of phi(t - z_a) prod over b != a of Phi(t - z_b) dt,    z_a = h^T mu_a / (sigma ||h||)

    (thesis, Appendix E.3.2), on `nodes` quadrature nodes a context that all actions share, so that it costs K and not K^2 terms
    a node; see `normal_choice`. Where h = 0 all actions are equally probable. As sigma falls to 0 the policy becomes the one that
    plays the largest h^T mu_a. Probabilities are exact up to `tolerance`, and sum to 1 up to as much.

    actions: mu (K, l), float64 or float32. sigma > 0. encoder: what is made of the context first (None: h = x and l = d).
    nodes: where none are given, as many as 1e-8 takes for up to 10,000 actions (32 to 64), and 64 for more.

    >>> policy = GaussianPolicy([[0.0], [0.0], [-9.0]])
    >>> policy.probabilities_of_many([[1.0]], [[0, 1, 2]]).round(6)
    array([[0.5, 0.5, 0. ]])
    """

    _settings = ("sigma", "nodes")

    def __init__(
        self,
        actions: npt.ArrayLike,
        sigma: float = 1.0,
        encoder: ContextEncoder | None = None,
        nodes: int | None = None,
    ) -> None:
        super().__init__(actions, sigma, encoder)
        wanted = normal_choice.usual_nodes(self.action_count) if nodes is None else nodes
        self.nodes = validate.count("nodes", wanted, normal_choice.LEAST_NODES)
        validate.room("nodes", self.nodes, 4 * 8 * ROWS, f"nodes of {ROWS} contexts")
        # how far, at most, a probability, or the sum of all, is from what it should be
        self.tolerance = normal_choice.tolerance(self.nodes, self.action_count)

    def rows(self, X: Array) -> PolicyRows:
        """The policy at a block of contexts."""
        return _GaussianRows(self._linear, self._vectors(X), self.sigma, self.nodes)

    def _drawn(self, scores: AnyArray, h: AnyArray, rng: np.random.Generator) -> Array:
        """One normal an action."""
        return scores + self.sigma * rng.standard_normal(scores.shape)

    def _vectors(self, X: Array) -> AnyArray:
        """h / ||h||, and 0 where h is."""
        h = self._linear.scaled(X)
        lengths = _lengths(h)
        return np.asarray(h / np.where(lengths > 0, lengths, 1.0)[:, None], dtype=h.dtype)


@POLICIES.register("mixed-logit")
class MixedLogitPolicy(_RandomisedPolicy):
    """Plays from the softmax of scores h^T theta_a, theta_a ~ N(mu_a, sigma^2 I) drawn anew at every decision.

        pi(a|x) = E[softmax(h^T mu + sigma ||h|| eps)_a],    eps ~ N(0, I_K)

    (thesis, Appendix E.3.2). Probabilities are means over `draws` of eps from `seed`, the same for all contexts; a probability's
    standard error is `standard_errors`, and at most `largest_error`. Draws and best actions are exact: sampling needs no
    probability. What is linear in the policy can be computed draw by draw (`rows(X).draws_at`): numbers that are independent,
    unbiased and bounded, from which a confidence statement can be made that includes the simulation.

    actions: mu (K, l), float64 or float32. sigma > 0. encoder: what is made of the context first (None: h = x and l = d).
    """

    _settings = ("sigma", "draws", "seed")

    def __init__(
        self,
        actions: npt.ArrayLike,
        sigma: float = 1.0,
        encoder: ContextEncoder | None = None,
        draws: int = 2048,
        seed: int = 0,
    ) -> None:
        super().__init__(actions, sigma, encoder)
        self.draws = validate.count("draws", draws, 2)
        validate.room("draws", self.draws, 4 * 8 * ROWS, f"draws for {ROWS} contexts")
        self.seed = validate.seed(seed)
        # what no probability's standard error exceeds, since probabilities lie in [0, 1]
        self.largest_error = 0.5 / math.sqrt(self.draws)
        self._noise = Noise(self.action_count, self.draws, self.seed)

    def rows(self, X: Array) -> MixedLogitRows:
        """The policy at a block of contexts."""
        h = self._vectors(X)
        return MixedLogitRows(self._linear, h, self._scale(h), self._noise)

    def standard_errors(self, X: npt.ArrayLike, actions: npt.ArrayLike) -> Array:
        """(n,): the standard errors of probabilities_of(X, actions)."""
        X = self._contexts(X)
        ids = self._ids("actions", actions, (len(X),))
        out = np.empty(len(X))
        for part in row_blocks(len(X)):
            out[part] = self.rows(X[part]).draws_at(ids[part]).std(axis=1, ddof=1) / math.sqrt(self.draws)
        return out

    def _drawn(self, scores: AnyArray, h: AnyArray, rng: np.random.Generator) -> Array:
        """A normal and a Gumbel variable an action."""
        normals = self._scale(h)[:, None] * rng.standard_normal(scores.shape)
        return np.asarray(scores + normals + rng.gumbel(size=scores.shape))

    def _scale(self, h: AnyArray) -> Array:
        """sigma ||h||, (b,), to the digits that hold in the precision of h: normalised contexts then have one scale."""
        part, power = np.frexp(_lengths(h))
        digits = 2.0 ** (40 if h.dtype == np.float64 else 20)
        scale = np.asarray(self.sigma * np.ldexp(np.round(part * digits) / digits, power))
        if not (scale < LARGEST_SCALE).all():
            came = f"contexts that give vectors as long as {scale.max() / self.sigma:.3g}"
            raise InvalidInput("X", came, f"sigma = {self.sigma:g} times their length below {LARGEST_SCALE:g}")
        return scale


__all__ = ["GaussianPolicy", "MixedLogitPolicy", "gaussian_kl"]
