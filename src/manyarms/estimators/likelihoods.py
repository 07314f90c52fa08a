"""Policy-weighted log-likelihoods (PWLL): concave in the scores of a softmax, and no estimates of a value.

    U_g(pi) = 1/n sum_i g(R_i, pi0(A_i|X_i)) log pi(A_i|X_i)        g >= 0 (thesis, Section 7.2)

    LPI          g = r                                              (thesis, Section 7.2)
    cLPI         g = r / max(p0, tau)                               (thesis, Section 7.2)
    ES-LPI       g = r / p0^alpha                                   exponential smoothing's weight (thesis, Section 7.2)
    RegKL        g = exp(r / beta)                                  (thesis, Section 7.2)
    RegKL-LIN    exp(r / beta) pi(A|X), the log left out            to see what the log does
    BPR          r log sigmoid(s(A) - s(a-)), a- at random          an approximate PWLL (thesis, Section 7.2); a- may be of pi0

The best policy of U_g has pi(a|x) in proportion to pi0(a|x) E[g(R, pi0(a|x)) | x, a] (thesis, Appendix D.1.2).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np

from manyarms._base import validate
from manyarms._base.arrays import logaddexp
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.estimators.base import OBJECTIVES, Answers, LinearTerms, Request, RowObjective, Tensor, some_rows
from manyarms.estimators.logging_policy import logged_propensities, require_full_propensities
from manyarms.estimators.oracles import FiniteProblem, greedy, proportional
from manyarms.logs.data import LoggedData
from manyarms.weights import ClipPropensities, Correction, ExponentialAlpha

Weight = Callable[[Array, Array], Array]
"""g: rewards (n,) and propensities (n,) to weights (n,) of at least 0."""

LEAST_BETA = 0.1
NEGATIVES = ("uniform", "logging")


class WeightedLikelihood(RowObjective):
    """The log-likelihood of what was played, weighted by g(r, p0) >= 0, which `weight` gives."""

    needs_propensities: bool = True
    """Whether g depends on p0; it is given ones where it does not."""

    of_log: ClassVar[bool] = True
    """Whether it is the logarithm of pi that is weighted."""

    @abstractmethod
    def weight(self, rewards: Array, propensities: Array) -> Array:
        """g(r, p0), elementwise."""

    def prepare(self, log: LoggedData) -> Request:
        pi0 = logged_propensities(log, self.label) if self.needs_propensities else np.ones(len(log))
        weights = self.weight(log.rewards, pi0)
        if weights.shape != (len(log),):
            raise InvalidInput("g", f"weights of shape {weights.shape}", f"one weight for each of {len(log)} rows")
        wrong = ~(np.isfinite(weights) & (weights >= 0))
        if wrong.any():
            row = int(np.argmax(wrong))
            came = f"a weight of {weights[row]:g} at row {row}, where the reward is {log.rewards[row]:g}"
            advice = "finite weights of at least 0 (for negative rewards log.with_unit_rewards() rescales them)"
            raise InvalidInput("g", came, advice)
        return Request({"weight": weights}, active=some_rows(weights), rising=True)

    def terms(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor:
        return columns["weight"] * (answers.log_pi if self.of_log else answers.pi)[:, 0]

    def linear_terms(self, log: LoggedData) -> LinearTerms | None:
        if not self.keeps(WeightedLikelihood.terms):
            return None
        weights = self.prepare(log).columns["weight"]
        assert not callable(weights)
        return LinearTerms(weights, self.of_log)

    def oracle(self, problem: FiniteProblem) -> Array:
        """In proportion to pi0(a|x) E[g | x, a]."""
        return proportional(self.mean_weight(problem))

    def mean_weight(self, problem: FiniteProblem) -> Array:
        """pi0(a|x) E[g | x, a], (nx, K)."""
        pi0, r = problem.logging, problem.rewards
        played = np.where(pi0 > 0, pi0, 1.0).ravel()
        at = [self.weight(np.full(played.size, reward), played).reshape(pi0.shape) for reward in (0.0, 1.0)]
        return pi0 * ((1 - r) * at[0] + r * at[1])


class PWLL(WeightedLikelihood):
    """With any function g of rewards and propensities. label: what to call it. propensities: whether g looks at them."""

    name: ClassVar[str] = "pwll"
    row_by_row = True

    def __init__(self, g: Weight, label: str = "pwll", *, propensities: bool = True) -> None:
        if not callable(g):
            raise InvalidInput("g", validate.describe(g), "a function of rewards and propensities")
        self._g, self._label = g, validate.instance("label", label, str, "what to call the objective")
        self.needs_propensities = validate.flag("propensities", propensities)

    @property
    def label(self) -> str:
        return self._label

    def weight(self, rewards: Array, propensities: Array) -> Array:
        found = np.asarray(self._g(rewards, propensities))
        if found.dtype.kind not in "fiub":
            raise InvalidInput("g", f"weights of type {found.dtype}", "a function that gives numbers")
        return found.astype(np.float64, copy=False)


@OBJECTIVES.register("lpi")
class LPI(WeightedLikelihood):
    """Local policy improvement: R log pi; best policy in proportion to r(x, a) pi0(a|x). Needs no propensities."""

    summary: ClassVar[str] = "log-likelihood weighted by r; needs no propensities"
    needs_propensities = False
    row_by_row = True

    def weight(self, rewards: Array, propensities: Array) -> Array:
        return rewards


class CorrectedLPI(WeightedLikelihood):
    """LPI with weights of a correction that is linear in pi: R w_hat / pi log pi."""

    row_by_row = True

    def __init__(self, correction: Correction) -> None:
        if not isinstance(correction, Correction) or not correction.linear_in_policy:
            came = validate.describe(correction)
            raise InvalidInput("correction", came, "a correction that is linear in the policy, such as cips, es, ix")
        self.correction = correction

    @property
    def settings(self) -> dict[str, float]:
        return self.correction.settings

    def weight(self, rewards: Array, propensities: Array) -> Array:
        return self.correction.weight(rewards, propensities)  # linear: what it is for pi = 1, times r


@OBJECTIVES.register("clpi")
class cLPI(CorrectedLPI):
    """Clipped LPI: R / max(pi0, tau) log pi, 0 <= tau <= 1; best policy ~ r(x, a) pi0 / max(pi0, tau)."""

    summary: ClassVar[str] = "log-likelihood weighted by r / max(p0, tau): concave, and the first to try"
    parameter: ClassVar[str | None] = "tau"

    def __init__(self, tau: float = 0.01) -> None:
        super().__init__(ClipPropensities(tau))


@OBJECTIVES.register("es-lpi", "eslpi")
class ESLPI(CorrectedLPI):
    """LPI with exponential smoothing: R / pi0^alpha log pi, 0 <= alpha <= 1; best policy ~ r(x, a) pi0^(1 - alpha)."""

    summary: ClassVar[str] = "log-likelihood weighted by r / p0^alpha"
    parameter: ClassVar[str | None] = "alpha"

    def __init__(self, alpha: float = 0.5) -> None:
        super().__init__(ExponentialAlpha(alpha))


@OBJECTIVES.register("regkl")
class RegKL(WeightedLikelihood):
    """exp(R / beta) log pi for rewards in [0, 1]; best policy ~ E[exp(R / beta) | x, a] pi0(a|x). Needs no propensities.

    A large beta imitates the logging policy, a small one follows the reward. Every row counts, also those without reward.
    """

    summary: ClassVar[str] = "log-likelihood weighted by exp(r / beta); needs no propensities"
    parameter: ClassVar[str | None] = "beta"
    needs_propensities = False
    row_by_row = True

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = validate.positive("beta", beta)
        if self.beta < LEAST_BETA:
            expected = (
                f"at least {LEAST_BETA:g}: weights grow as exp(1 / beta), beyond {np.exp(1 / LEAST_BETA):.0f} below it,"
            )
            raise InvalidInput("beta", beta, f"{expected} and overflow")

    @property
    def settings(self) -> dict[str, float]:
        return {"beta": self.beta}

    def prepare(self, log: LoggedData) -> Request:
        log.require("unit_rewards", purpose=self.name)
        return super().prepare(log)

    def weight(self, rewards: Array, propensities: Array) -> Array:
        return np.exp(rewards / self.beta)


@OBJECTIVES.register("regkl-lin", "regkl-linear")
class RegKLLinear(RegKL):
    """RegKL-LIN: exp(R / beta) pi, RegKL without its log; the best policy plays one action, the same weight's largest."""

    summary: ClassVar[str] = "regkl without its logarithm, for comparison"
    of_log: ClassVar[bool] = False

    def oracle(self, problem: FiniteProblem) -> Array:
        """The action with the largest pi0(a|x) E[exp(R / beta) | x, a]."""
        return greedy(self.mean_weight(problem))


@OBJECTIVES.register("bpr")
class BPR(RowObjective):
    """Bayesian personalised ranking: R log sigmoid(s(A) - s(a-)), averaged over random actions a-, the negatives.

    It needs scores of 1 + count actions a row and no normaliser. Rewards must be at least 0. count: of negatives a row.
    negatives: where they come from, "uniform" (all actions alike) or "logging" (pi0 at the row's own context).

    What is learned depends on the negatives' law q(a|x). The positives, weighted by R, have the law p(a|x) in proportion to
    pi0(a|x) r(x, a). Of two actions a and b the objective's mean is, up to one factor,

        p(a) q(b) log sigmoid(s(a) - s(b)) + p(b) q(a) log sigmoid(s(b) - s(a)),

    and the sum is over all pairs. A log sigmoid(d) + B log sigmoid(-d) is largest where d = log(A / B), that is

        s(a) - s(b) = log(p(a) / q(a)) - log(p(b) / q(b)),

    which s = log(p / q) + const(x) does for all pairs at once. Uniform negatives thus learn log(pi0 r), which mixes what earns
    with what used to be shown; negatives from pi0 learn log r, as in counterfactual sample identification. They need pi0: the
    policy itself, which is asked at every batch, or a log that lists all it could play, which is cheaper. Of actions that pi0
    never plays nothing is learned then, and their scores stay where they began.
    """

    summary: ClassVar[str] = "ranks what was rewarded above random actions; needs no propensities and no normaliser"
    parameter: ClassVar[str | None] = "count"
    row_by_row = True

    def __init__(self, count: int = 1, negatives: str = "uniform") -> None:
        self.count = validate.room("count", validate.count("count", count), 8, "negatives a row")
        if not isinstance(negatives, str) or negatives not in NEGATIVES:
            expected = f"one of {', '.join(NEGATIVES)} (how many they are is count)"
            raise InvalidInput("negatives", validate.describe(negatives), expected)
        self.negatives = negatives

    @property
    def settings(self) -> dict[str, float]:
        return {"count": self.count}

    @property
    def label(self) -> str:
        return super().label + (" against the logging policy" if self.negatives == "logging" else "")

    def prepare(self, log: LoggedData) -> Request:
        same = LPI().prepare(log)  # the same weights
        draw = require_full_propensities(log, self.label).sample if self.negatives == "logging" else None
        return Request(same.columns, active=same.active, raw_scores=True, negatives=self.count, draw=draw)

    def oracle(self, problem: FiniteProblem) -> Array:
        """The softmax of the best scores: in proportion to pi0 r, or to r where pi0 plays."""
        q = problem.logging if self.negatives == "logging" else np.ones_like(problem.logging)
        return proportional(np.divide(problem.logging * problem.rewards, q, out=np.zeros_like(q), where=q > 0))

    def terms(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor:
        assert answers.scores is not None
        lead = answers.scores[:, :1] - answers.scores[:, 1:]
        # log sigmoid(z) = -log(1 + exp(-z)), which is smooth at 0 in this form and cannot overflow
        return columns["weight"] * -logaddexp(-lead, 0.0 * lead).mean(1)


__all__ = [
    "BPR",
    "ESLPI",
    "LEAST_BETA",
    "LPI",
    "NEGATIVES",
    "PWLL",
    "CorrectedLPI",
    "RegKL",
    "RegKLLinear",
    "Weight",
    "WeightedLikelihood",
    "cLPI",
]
