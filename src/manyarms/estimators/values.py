"""Estimates of a policy's value as objectives: inverse propensity scoring with its corrections, DM and DR.

    IPS      1/n sum_i w_hat(X_i, A_i) R_i                                      any correction (thesis, lines 2052-2079)
    snIPS    sum_i w_i R_i / sum_i w_i,   w = pi / pi0                          over the rows of a batch
    DM       1/n sum_i E_pi[r_hat(X_i, A)]                                      (thesis, lines 1736-1739)
    DR       1/n sum_i w_hat (R_i - r_hat(X_i, A_i)) + E_pi[r_hat(X_i, A)]      (thesis, lines 2081-2085)

Rows without reward add nothing to the first, whatever the policy: they are not active.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from manyarms._base import validate
from manyarms._base.typing import Array
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Batch, Objective, RowObjective, Rows, Tensor, Terms, some_rows
from manyarms.estimators.logging_policy import RewardModel, logged_propensities
from manyarms.estimators.models import checked_model, no_ids
from manyarms.estimators.oracles import FiniteProblem, greedy, predictions, proportional
from manyarms.logs.data import LoggedData
from manyarms.weights import (
    ClipPropensities,
    Correction,
    ExponentialAlpha,
    ExponentialBeta,
    ImplicitExploration,
    LinearLogSmoothing,
    LogSmoothing,
    NoCorrection,
    Shrinkage,
)


class IPS(RowObjective):
    """The mean of w_hat R for any correction of `manyarms.weights`; none by default.

    With a correction that is linear in pi the best policy plays the action with the largest r(x, a) pi0 w_hat / pi: for IPS
    the best-rewarding action that pi0 plays (thesis, lines 2056-2059, 4837-4859).
    """

    name: ClassVar[str] = "ips"

    def __init__(self, correction: Correction | None = None) -> None:
        self.correction: Correction = NoCorrection() if correction is None else correction
        if not isinstance(self.correction, Correction):
            raise InvalidInput("correction", validate.describe(correction), "a correction of manyarms.weights")

    @property
    def settings(self) -> dict[str, float]:
        return self.correction.settings

    @property
    def label(self) -> str:
        inside = ", ".join(f"{name}={value:.3g}" for name, value in self.settings.items())
        kind = self.correction.name if type(self) is IPS else self.name
        return f"{kind} ({inside})" if inside else kind

    def prepare(self, log: LoggedData) -> Rows:
        return self.checked(log)

    def checked(self, log: LoggedData) -> Rows:
        """The rows as any objective around this one needs them."""
        if isinstance(self.correction, LogSmoothing):
            log.require("unit_rewards", purpose=self.label)
        columns = {"reward": log.rewards, "propensity": logged_propensities(log, self.label)}
        # every correction but shrinkage gives more weight to more probability
        rising = bool((log.rewards >= 0).all()) and not isinstance(self.correction, Shrinkage)
        return Rows(log.actions[:, None], columns, active=some_rows(log.rewards), rising=rising)

    def contributions(self, terms: Terms, batch: Batch) -> Tensor:
        columns = batch.columns
        return weighted(self.correction, terms.log_probability[:, 0], columns["propensity"], columns["reward"])

    def oracle(self, problem: FiniteProblem) -> Array:
        """One action a context, or for w^beta in proportion to r(x, a)^(1 / (1 - beta)) pi0(a|x) (thesis, line 2079)."""
        correction = self.correction
        if isinstance(correction, ExponentialBeta) and correction.beta < 1:
            # the largest reward is taken out: a high power of a small one must not vanish
            scale = (problem.rewards * (problem.logging > 0)).max(axis=1, keepdims=True)
            relative = problem.rewards / np.where(scale > 0, scale, 1.0)
            return proportional(relative ** (1 / (1 - correction.beta)) * problem.logging)
        if not (correction.linear_in_policy or correction.is_none):
            raise InvalidInput("correction", correction.name, "one whose best policy has a closed form")
        return greedy(problem.rewards * correction.effective_policy(np.ones(problem.logging.shape), problem.logging))


def weighted(correction: Correction, log_pi: Tensor, pi0: Tensor, reward: Tensor) -> Tensor:
    """w_hat * reward, (b,), from log pi.

    w^beta is taken in logs: as a power it has no gradient where pi is too small to be told from 0.
    """
    if isinstance(correction, ExponentialBeta):
        return (correction.beta * (log_pi - pi0.log())).exp() * reward
    return correction.terms(log_pi.exp(), pi0, reward)


class cIPS(IPS):
    """Clipped IPS: pi / max(pi0, tau) R, 0 <= tau <= 1 (thesis, lines 2061-2068)."""

    name: ClassVar[str] = "cips"

    def __init__(self, tau: float = 0.01) -> None:
        super().__init__(ClipPropensities(tau))


class ES(IPS):
    """Exponential smoothing: pi / pi0^alpha R, 0 <= alpha <= 1 (thesis, lines 2070-2078).

    alpha = "adaptive": inside a PACBayes objective, the best one for the bound on every batch (thesis, lines 2532-2545).
    """

    name: ClassVar[str] = "es"

    def __init__(self, alpha: float | str = 0.5) -> None:
        self.adaptive = alpha == "adaptive"
        if isinstance(alpha, str) and not self.adaptive:
            raise InvalidInput("alpha", repr(alpha), "a number between 0 and 1, or 'adaptive'")
        super().__init__(ExponentialAlpha(1.0 if isinstance(alpha, str) else alpha))

    @property
    def settings(self) -> dict[str, float]:
        return {} if self.adaptive else super().settings

    @property
    def label(self) -> str:
        return "es (adaptive alpha)" if self.adaptive else super().label

    def prepare(self, log: LoggedData) -> Rows:
        if self.adaptive:
            raise InvalidInput("alpha", "'adaptive'", "a number: only a PACBayes objective has a bound to adapt it to")
        return super().prepare(log)


class ESBeta(IPS):
    """Exponential smoothing of the whole weight: (pi / pi0)^beta R, 0 <= beta <= 1 (thesis, line 2079)."""

    name: ClassVar[str] = "es-beta"

    def __init__(self, beta: float = 0.5) -> None:
        super().__init__(ExponentialBeta(beta))


class IX(IPS):
    """Implicit exploration: pi / (pi0 + gamma) R, gamma >= 0 (thesis, line 2675)."""

    name: ClassVar[str] = "ix"

    def __init__(self, gamma: float = 0.01) -> None:
        super().__init__(ImplicitExploration(gamma))


class LS(IPS):
    """Logarithmic smoothing of rewards in [0, 1]; linear: pi / l log(1 + l R / pi0), else log(1 + l R pi / pi0) / l."""

    name: ClassVar[str] = "ls"

    def __init__(self, smoothing: float = 0.01, linear: bool = True) -> None:
        super().__init__(LinearLogSmoothing(smoothing) if linear else LogSmoothing(smoothing))


class SelfNormalisedIPS(Objective):
    """snIPS: the sum of w R over the sum of w, w = pi / pi0, over the rows of a batch.

    Every row counts, also those without reward. The ratio of a batch is not an unbiased part of the ratio of the log: the larger
    the batch, the nearer. The best policy has a closed form where pi0 plays every action: that of IPS. Elsewhere the ratio can
    be raised by playing, at contexts of little reward, what pi0 never plays, so that they drop out of both sums.
    """

    name: ClassVar[str] = "snips"

    def prepare(self, log: LoggedData) -> Rows:
        columns = {"reward": log.rewards, "propensity": logged_propensities(log, self.name)}
        return Rows(log.actions[:, None], columns)

    def value(self, terms: Terms, batch: Batch) -> Tensor:
        """The weights' shares as a softmax of log w, which no small weight can make 0 / 0."""
        shares = (terms.log_probability[:, 0] - batch.columns["propensity"].log()).softmax(0)
        return (shares * batch.columns["reward"]).sum()

    def oracle(self, problem: FiniteProblem) -> Array:
        """The best-rewarding action, where pi0 plays every action."""
        if not problem.logging.min() > 0:
            raise InvalidInput("problem.logging", "actions that are never played", "every action's probability above 0")
        return greedy(problem.rewards)


class DM(RowObjective):
    """The direct method: the mean of E_pi[r_hat]; the best policy plays the model's best action. Needs no propensities."""

    name: ClassVar[str] = "dm"

    def __init__(self, model: RewardModel) -> None:
        self.model = model

    def prepare(self, log: LoggedData) -> Rows:
        return Rows(no_ids(len(log)), model=checked_model(self.model, log))

    def contributions(self, terms: Terms, batch: Batch) -> Tensor:
        assert terms.expectation is not None
        return terms.expectation

    def oracle(self, problem: FiniteProblem) -> Array:
        """The model's best action."""
        return greedy(predictions(problem, self.model))


class DR(RowObjective):
    """Doubly robust: w_hat (R - r_hat(X, A)) + E_pi[r_hat(X, .)], clipped at tau (thesis, lines 2081-2085, 4861-4869).

    tau = 0 clips nothing. correction: another one in place of clipping; it may not depend on rewards.
    """

    name: ClassVar[str] = "dr"

    def __init__(self, model: RewardModel, tau: float = 0.0, *, correction: Correction | None = None) -> None:
        self.model = model
        self.correction: Correction = ClipPropensities(tau) if correction is None else correction
        if not isinstance(self.correction, Correction) or isinstance(self.correction, LogSmoothing):
            raise InvalidInput(
                "correction", validate.describe(correction), "a correction that does not depend on rewards"
            )

    @property
    def settings(self) -> dict[str, float]:
        return self.correction.settings

    def prepare(self, log: LoggedData) -> Rows:
        pi0 = logged_propensities(log, self.name)
        model = checked_model(self.model, log)
        columns = {"residual": log.rewards - model.predict(log.contexts, log.actions), "propensity": pi0}
        return Rows(log.actions[:, None], columns, model=model)

    def contributions(self, terms: Terms, batch: Batch) -> Tensor:
        assert terms.expectation is not None
        columns, log_pi = batch.columns, terms.log_probability[:, 0]
        return weighted(self.correction, log_pi, columns["propensity"], columns["residual"]) + terms.expectation

    def oracle(self, problem: FiniteProblem) -> Array:
        """The action with the largest r_hat + (r - r_hat) pi0 w_hat / pi."""
        if not self.correction.linear_in_policy:
            raise InvalidInput("correction", self.correction.name, "one whose best policy has a closed form")
        r_hat = predictions(problem, self.model)
        kept = self.correction.effective_policy(np.ones(r_hat.shape), problem.logging)
        return greedy(r_hat + kept * (problem.rewards - r_hat))


__all__ = ["DM", "DR", "ES", "IPS", "IX", "LS", "ESBeta", "SelfNormalisedIPS", "cIPS", "weighted"]
