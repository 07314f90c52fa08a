"""Inverse propensity scoring with any correction of `manyarms.weights`.

    IPS      1/n sum_i w_hat(X_i, A_i) R_i                                      (thesis, Section 7.1.1)
    snIPS    sum_i w_hat_i R_i / sum_i w_hat_i                                  self-normalised; in learning, of a batch

cIPS, ES, ESBeta, IX, LS and SNIPS are IPS with one correction each. Rows without reward add nothing to a mean, whatever the
policy: they are not active.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping

import numpy as np

from manyarms._base import validate
from manyarms._base.arrays import softmax
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.estimators.base import (
    Answers,
    Batch,
    Estimator,
    LinearTerms,
    Range,
    Request,
    Tensor,
    some_rows,
    weighted_span,
)
from manyarms.estimators.logging_policy import CellFunction, logged_propensities, lost, lost_sums
from manyarms.estimators.oracles import FiniteProblem
from manyarms.logs.data import LoggedData
from manyarms.weights import (
    CORRECTIONS,
    ClipPropensities,
    Correction,
    ExponentialAlpha,
    ExponentialBeta,
    ImplicitExploration,
    LinearLogSmoothing,
    LogSmoothing,
    NoCorrection,
)

CONSISTENT = "consistent, biased by about 1/n, where the logging policy plays whatever the policy plays"
COVERED = "unbiased where the logging policy plays whatever the policy plays"


class CorrectedEstimator(Estimator):
    """w_hat * factor + baseline: what can be said of the bias and the range of such terms, for any correction.

    With P and N the sums over a of the positive and the negative parts of pi - pi0 w_hat, and factors in [l, h], the value less
    the mean lies between l P + h N and h P + l N (thesis, Section 8.6.1).
    """

    @property
    @abstractmethod
    def correction(self) -> Correction:
        """How weights are regularised."""

    @abstractmethod
    def factor_range(self, rewards: Range | None) -> Range | None:
        """Numbers between which what is weighted lies."""

    @abstractmethod
    def baseline_range(self) -> Range | None:
        """Numbers between which what is added lies."""

    def corrected(self, answers: Answers, pi0: Tensor, factor: Tensor) -> Tensor:
        """w_hat * factor, from pi or log pi of the logged action, whichever the policy gave."""
        if answers.probability is None:
            return self.correction.terms_from_log(answers.log_pi[:, 0], pi0, factor)
        return self.correction.terms(answers.pi[:, 0], pi0, factor)

    def span(self, rewards: Range | None, floor: float) -> Range | None:
        return weighted_span(self.correction.bound(floor), self.factor_range(rewards), self.baseline_range())

    def bias_sums(self) -> dict[Hashable, CellFunction]:
        return lost_sums(self.correction)

    def bracket(self, values: Array, answers: Answers, rewards: Range) -> tuple[Array, Array] | None:
        factor = self.factor_range(rewards)
        if factor is None:
            return None
        (least, most), (positive, negative) = factor, lost(self.correction, answers.sums)
        if not self.correction.depends_on_reward:
            return values + least * positive + most * negative, values + most * positive + least * negative
        # P is what is lost at a reward of 1, the most that can be; at other rewards nothing else is known
        return (values, values + most * positive) if self.correction.never_above and least >= 0 else None

    def span_with_bias(self, rewards: Range, floor: float) -> Range | None:
        span, factor = self.span(rewards, floor), self.factor_range(rewards)
        if span is None or factor is None:
            return None
        least, most = factor
        if self.correction.depends_on_reward:
            return span[0], span[1] + most
        # P and N of the bias lie in [0, 1] and [-P, 0]: what is kept of pi sums to at most 1
        return span[0] + min(0.0, least, least - most), span[1] + max(0.0, most, most - least)


class IPS(CorrectedEstimator):
    """The mean of w_hat R, or, self-normalised, the sum of w_hat R over the sum of w_hat.

    correction: any of `manyarms.weights`; none by default. The name of one, such as "cips", leaves its parameter to the rule
    that it has for the number of rows. self_normalised: in learning the ratio is that of a batch, which is not an unbiased part
    of the ratio of the log: the larger the batch, the nearer.

    With a correction that is linear in pi the best policy plays the action with the largest r(x, a) pi0 w_hat / pi: for IPS
    the best-rewarding action that pi0 plays (thesis, Section 7.1.1 and Appendix D.1.1). Self-normalised, it is the same where pi0
    plays every action; elsewhere the ratio can be raised by playing, at contexts of little reward, what pi0 never plays, so that
    they drop out of both sums.
    """

    row_by_row = True

    def __init__(self, correction: Correction | str | None = None, *, self_normalised: bool = False) -> None:
        self._correction: Correction | None = NoCorrection()
        self._family: type[Correction] = NoCorrection
        if isinstance(correction, str):
            self._family = CORRECTIONS[correction]
            self._correction = None if self._family.parameter is not None else self._family.make()
        elif isinstance(correction, Correction):
            self._correction, self._family = correction, type(correction)
        elif correction is not None:
            raise InvalidInput("correction", validate.describe(correction), "a correction of manyarms.weights")
        self_normalised = validate.flag("self_normalised", self_normalised)
        if self_normalised and self._family.depends_on_reward:
            raise InvalidInput("correction", self._family.name, "one that does not depend on rewards, self-normalised")
        self.self_normalised = self_normalised
        self.unit_rewards = self._family.depends_on_reward
        if self._correction is not None:
            self._describe(self._correction)

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the correction; "snips", or with "sn-" before it, self-normalised."""
        name = self._family.name
        return {"sn-ips": "snips"}.get(f"sn-{name}", f"sn-{name}") if self.self_normalised else name

    @property
    def settings(self) -> dict[str, float]:
        return {} if self._correction is None else self._correction.settings

    @property
    def correction(self) -> Correction:
        """How weights are regularised."""
        if self._correction is None:
            raise InvalidInput(
                "correction", f"{self.name!r} without a parameter", f"{self._family.parameter}, a number"
            )
        return self._correction

    def resolved(self, rows: int) -> IPS:
        if self._correction is not None:
            return self
        return IPS(self._family.make(rows=rows), self_normalised=self.self_normalised)

    # ---- terms

    def prepare(self, log: LoggedData) -> Request:
        if self.unit_rewards:
            log.require("unit_rewards", purpose=self.label)
        columns = {"reward": log.rewards, "propensity": logged_propensities(log, self.label)}
        if self.self_normalised:
            return Request(columns)
        rising = self._family.rising and bool((log.rewards >= 0).all())
        return Request(columns, active=some_rows(log.rewards), rising=rising)

    def terms(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor:
        return self.corrected(answers, columns["propensity"], columns["reward"])

    def linear_terms(self, log: LoggedData) -> LinearTerms | None:
        """R w_hat / pi, where that does not depend on pi: the terms at pi = 1."""
        keeps = type(self).terms is IPS.terms and type(self).value is IPS.value
        if self.self_normalised or not self._family.linear_in_policy or not keeps:
            return None
        pi0 = logged_propensities(log, self.label)
        return LinearTerms(self.correction.terms(np.ones(len(log)), pi0, log.rewards), of_log=False)

    def weights(self, answers: Answers, columns: Mapping[str, Tensor]) -> Tensor:
        """w_hat; w where the correction acts on w * r."""
        correction = NoCorrection() if self.unit_rewards else self.correction
        return correction.weight(answers.pi[:, 0], columns["propensity"])

    def value(self, answers: Answers, batch: Batch) -> Tensor:
        """The mean; self-normalised, the weights' shares as a softmax of log w_hat, which no small weight can make 0 / 0."""
        if not self.self_normalised:
            return super().value(answers, batch)
        shares = softmax(self.correction.log_weight(answers.log_pi[:, 0], batch.columns["propensity"]))
        return (shares * batch.columns["reward"]).sum()

    # ---- what is known

    def _describe(self, correction: Correction) -> None:
        none, plain = correction.is_none, not self.self_normalised
        self.unbiased, self.consistent = none and plain, none and not plain
        self.never_above, self.log_smoothing = correction.never_above and plain, correction.log_smoothing
        if self.consistent:
            self.note = CONSISTENT
        elif self.self_normalised:
            self.note = "biased: tends to a mean over what the correction keeps"
        elif self.unit_rewards and self.never_above:
            self.note = "biased: its mean is at most the value"
        elif self.never_above and not self.unbiased:
            self.note = (
                "biased: counts too little of large weights; its mean is at most the value where rewards are at least 0"
            )
        else:
            self.note = COVERED if self.unbiased else "biased, up or down"

    def factor_range(self, rewards: Range | None) -> Range | None:
        return None if self.self_normalised else rewards

    def baseline_range(self) -> Range | None:
        return 0.0, 0.0

    def bias_sums(self) -> dict[Hashable, CellFunction]:
        return {} if self.self_normalised else super().bias_sums()

    def oracle(self, problem: FiniteProblem) -> Array:
        """One action a context, or for w^beta a distribution over them (`Correction.best_policy`)."""
        if self.self_normalised and not problem.logging.min() > 0:
            raise InvalidInput("problem.logging", "actions that are never played", "every action's probability above 0")
        closed = self.correction.is_none or not self.self_normalised
        best = self.correction.best_policy(problem.rewards, problem.logging) if closed else None
        if best is None:
            raise InvalidInput("correction", self.correction.name, "one whose best policy has a closed form")
        return best


class cIPS(IPS):
    """Clipped IPS: pi / max(pi0, tau) R, 0 <= tau <= 1 (thesis, Section 7.1.1)."""

    def __init__(self, tau: float = 0.01) -> None:
        super().__init__(ClipPropensities(tau))


class ES(IPS):
    """Exponential smoothing: pi / pi0^alpha R, 0 <= alpha <= 1 (thesis, Section 7.1.1).

    alpha = "adaptive": inside a PACBayes objective, the best one for the bound on every batch (thesis, Sections 8.3.4 and 8.4).
    """

    def __init__(self, alpha: float | str = 0.5) -> None:
        self.adaptive = isinstance(alpha, str) and alpha == "adaptive"
        if isinstance(alpha, str) and not self.adaptive:
            raise InvalidInput("alpha", validate.describe(alpha), "a number between 0 and 1, or 'adaptive'")
        super().__init__(ExponentialAlpha(1.0 if isinstance(alpha, str) else alpha))

    @property
    def settings(self) -> dict[str, float]:
        return {} if self.adaptive else super().settings

    @property
    def label(self) -> str:
        return "es (adaptive alpha)" if self.adaptive else super().label

    def prepare(self, log: LoggedData) -> Request:
        if self.adaptive:
            raise InvalidInput("alpha", "'adaptive'", "a number: only a PACBayes objective has a bound to adapt it to")
        return super().prepare(log)


class ESBeta(IPS):
    """Exponential smoothing of the whole weight: (pi / pi0)^beta R, 0 <= beta <= 1 (thesis, Section 7.1.1)."""

    def __init__(self, beta: float = 0.5) -> None:
        super().__init__(ExponentialBeta(beta))


class IX(IPS):
    """Implicit exploration: pi / (pi0 + gamma) R, gamma >= 0 (thesis, Section 8.6)."""

    def __init__(self, gamma: float = 0.01) -> None:
        super().__init__(ImplicitExploration(gamma))


class LS(IPS):
    """Logarithmic smoothing of rewards in [0, 1]; linear: pi / l log(1 + l R / pi0), else log(1 + l R pi / pi0) / l."""

    def __init__(self, smoothing: float = 0.01, linear: bool = True) -> None:
        super().__init__(LinearLogSmoothing(smoothing) if validate.flag("linear", linear) else LogSmoothing(smoothing))


class SNIPS(IPS):
    """Self-normalised IPS: the sum of w_hat R over the sum of w_hat; without a correction w_hat = w = pi / pi0."""

    def __init__(self, correction: Correction | str | None = None) -> None:
        super().__init__(correction, self_normalised=True)


__all__ = ["CONSISTENT", "COVERED", "ES", "IPS", "IX", "LS", "SNIPS", "CorrectedEstimator", "ESBeta", "cIPS"]
