"""Pessimistic objectives: an estimate of the value less what a bound says it may be off by.

With w_hat the corrected weights of a policy, n rows, rewards in [0, 1] and KL the divergence of the learned distribution Q of
parameters from its prior (thesis, Sections 8.3.3 and 8.6 and Appendix E.3.3):

    V_hat   the mean of w_hat(A_i) R_i
    B       the mean over i of the sum over a of |pi - pi0 w_hat|                                       bias
    Var     the mean over i of the sum over a of pi0 w_hat^2, plus w_hat(A_i)^2 R_i^2                   second moments

    es, clip, ...  V_hat - sqrt(kl1 / 2n) - B - kl2 / (n l) - l/2 Var,    kl1 = KL + ln(4 sqrt(n)/delta), kl2 = KL + ln(4/delta)
    london, sakhi-1, sakhi-2    the bounds of the literature for clipped propensities, pi / max(pi0, tau)
    ls             (exp(l V_ls - (KL + ln(1/delta)) / n) - 1) / l, the bound of logarithmic smoothing

The formulas are those of `manyarms.bounds`, which certificates read too: here on the summary of a batch, whose numbers can be
differentiated. Where w_hat = pi / h(pi0) is linear in pi and pi an average of deterministic policies, w_hat^2 averages to
pi / h^2: the mixture's form. Otherwise the expectations are over draws of the parameters: the general form.

With l = None the best l for the batch is taken, l* = sqrt(2 kl2 / (n Var)), and alpha may be adapted to the batch too. That is
fine for an objective and forbidden for a certificate: nothing here is a guarantee. `manyarms.certificates` makes those, with l
and alpha from a grid that is declared beforehand and paid for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from manyarms._base import validate
from manyarms._base.arrays import as_float
from manyarms.bounds import BOUNDS, Averages, Bound, Grid, LogSmoothingBound, Statistic, Summary, Unified
from manyarms.bounds.concentration import confidence
from manyarms.bounds.summary import expected_square, logged_terms, overshoot, undershoot
from manyarms.bounds.unified import AUTHORS
from manyarms.errors import InvalidInput
from manyarms.estimators.base import Answers, Batch, Objective, Request, Tensor
from manyarms.estimators.ips import IPS
from manyarms.estimators.logging_policy import require_full_propensities
from manyarms.logs.data import LoggedData
from manyarms.policies.base import Policy
from manyarms.weights import Correction, ExponentialAlpha

BY_AUTHORS = "authors"
ALPHAS = tuple(float(a) for a in np.linspace(0.05, 1.0, 20))  # what an adaptive alpha is chosen from


class _Pessimistic(Objective):
    """An objective that takes something off an estimate of the IPS family."""

    row_by_row = True

    def __init__(self, value: IPS) -> None:
        if not isinstance(value, IPS) or value.self_normalised:
            raise InvalidInput(
                "value", validate.describe(value), "an objective of the IPS family (IPS, ES, cIPS, IX, LS)"
            )
        self.inner = value

    @property
    def correction(self) -> Correction:
        """How weights are regularised."""
        return self.inner.correction

    @property
    def adaptive(self) -> bool:
        """Whether alpha is chosen anew on every batch."""
        return bool(getattr(self.inner, "adaptive", False))

    def prepare(self, log: LoggedData) -> Request:
        log.require("unit_rewards", purpose=self.label)
        rows = IPS.prepare(self.inner, log)  # not its own, which refuses an adaptive alpha
        rows.active, rows.rising = None, False  # bias and variance count in every row
        rows.columns = {**rows.columns, "rounds": np.full(len(log), float(len(log)))}
        if self.needs_logging_policy:
            known = require_full_propensities(log, self.label)
            if known.listed is None and not isinstance(log.logging, Policy):
                raise InvalidInput("log.logging", validate.describe(log.logging), f"a policy, for {self.label}")
        rows.all_actions = self.needs_logging_policy
        return rows

    @property
    def needs_logging_policy(self) -> bool:
        """Whether pi0 is needed at all actions, and not at the logged ones alone."""
        return True


class PACBayes(_Pessimistic):
    """A PAC-Bayes lower bound on the value of a policy that averages over parameters, as an objective.

    value: the estimate inside: ES(alpha) (alpha a number, or "adaptive"), cIPS(tau), IX(gamma), IPS(), any other in the general
    form; LS for the bound "ls". delta: one minus the confidence. bound: a name of `manyarms.bounds.BOUNDS`, or a bound that is
    about the estimate; by default the unified one, and "ls" for LS. "general" is the unified one by draws of the parameters.
    lam: lambda; the best one for the batch unless given. "authors" is 2 sqrt(kl2 Var / n), by which the authors' code learns
    (`Unified.authors_lambda`): a named heuristic, "es-authors", which learns well where KL would cost too much, and yields no
    certificate.
    """

    name: ClassVar[str] = "pac-bayes"

    def __init__(
        self, value: IPS, delta: float = 0.05, bound: str | Bound | None = None, lam: float | str | None = None
    ) -> None:
        super().__init__(value)
        self.delta = confidence("delta", delta)
        self.certifies = not isinstance(lam, str)
        if isinstance(lam, str) and lam != BY_AUTHORS:
            raise InvalidInput("lam", repr(lam), f"a number above 0, None, or {BY_AUTHORS!r}")
        number = None if lam is None or isinstance(lam, str) else validate.positive("lam", lam)
        self.bound = _bound(self.correction, bound, number)
        if not (self.certifies or (isinstance(self.bound, Unified) and self.bound.is_open)):
            raise InvalidInput("lam", repr(lam), "a number: this lambda is for the unified bound of es, clip, ix, ips")
        if self.adaptive and not isinstance(self.bound, Unified):
            raise InvalidInput("bound", repr(self.bound.name), "'es' or 'general', for an adaptive alpha")
        if self.bound.for_fixed_only:
            raise InvalidInput("bound", repr(self.bound.name), "one that holds for learned policies")
        if not self.bound.mixture and not self.bound.over_draws:
            raise InvalidInput("value", self.inner.label, "weights linear in the policy, or bound='general'")

    @classmethod
    def by_bound(cls, name: str, rows: int, delta: float = 0.05, grid: Grid | None = None) -> PACBayes:
        """The objective that goes by a bound's name alone: its usual estimate for n rows, or what the grid gives."""
        bound = BOUNDS[name].usual(Grid() if grid is None else grid, validate.count("rows", rows))
        return cls(IPS(bound.estimated_by), delta, bound)

    @property
    def settings(self) -> dict[str, float]:
        lam = getattr(self.bound, "lam", None)
        return {**self.inner.settings, "delta": self.delta, **({} if lam is None else {"lam": lam})}

    @property
    def label(self) -> str:
        return (
            f"{self.bound.name} bound of {self.inner.label}" if self.certifies else f"{AUTHORS} on {self.inner.label}"
        )

    @property
    def needs_logging_policy(self) -> bool:
        return self.bound.needs_logging_policy

    def prepare(self, log: LoggedData) -> Request:
        rows = super().prepare(log)
        rows.draws = self.bound.over_draws
        rows.divergence = True
        return rows

    def value(self, answers: Answers, batch: Batch) -> Tensor:
        if answers.divergence is None:
            raise InvalidInput(
                "policy", "a policy without a distribution of parameters", "a GaussianPolicy or MixedLogitPolicy"
            )
        bound = self._adapted(answers, batch) if self.adaptive else self.bound
        summary, kl = self._summary(bound, answers, batch), answers.divergence
        if not self.certifies and isinstance(bound, Unified):
            bound = replace(bound, lam=bound.authors_lambda(summary, kl, self.delta))
        return bound.objective(summary, kl, self.delta)

    def _adapted(self, answers: Answers, batch: Batch) -> Bound:
        """With alpha* of the thesis, Sections 8.3.4 and 8.4 on the batch: the least B + sqrt(2 kl2 Var / n)."""

        kl: Tensor = answers.divergence

        def width(alpha: float) -> float:
            bound = Unified(ExponentialAlpha(alpha))
            return as_float(bound.width(self._summary(bound, answers, batch), kl, self.delta))

        assert isinstance(self.bound, Unified)
        return replace(self.bound, correction=ExponentialAlpha(min(ALPHAS, key=width)))

    def _summary(self, bound: Bound, answers: Answers, batch: Batch) -> Summary:
        return batch_summary(
            bound.statistics, answers, batch, mixture=not bound.over_draws, all_actions=bound.needs_logging_policy
        )


class Heuristic(_Pessimistic):
    """V_hat - l1 ||theta - start||^2 - l2 Var - l3 B (thesis, Sections 8.4.3 and 8.6.2).

    For averages over parameters (Gaussian policies) Var and B have their linear form, else those of the policy itself.
    """

    name: ClassVar[str] = "heuristic"

    def __init__(self, value: IPS, distance: float = 1e-5, variance: float = 1e-5, bias: float = 1e-5) -> None:
        super().__init__(value)
        if self.adaptive:
            raise InvalidInput("alpha", "'adaptive'", "a number: only a PACBayes objective has a bound to adapt it to")
        self.distance_weight = validate.not_negative("distance", distance)
        self.variance_weight = validate.not_negative("variance", variance)
        self.bias_weight = validate.not_negative("bias", bias)

    @property
    def settings(self) -> dict[str, float]:
        weights = {"l1": self.distance_weight, "l2": self.variance_weight, "l3": self.bias_weight}
        return {**self.inner.settings, **weights}

    @property
    def label(self) -> str:
        return f"heuristic on {self.inner.label}"

    def prepare(self, log: LoggedData) -> Request:
        rows = super().prepare(log)
        rows.squared_distance = self.distance_weight
        return rows

    def value(self, answers: Answers, batch: Batch) -> Tensor:
        mixture = answers.divergence is not None and self.correction.linear_in_policy
        found = batch_summary((self.correction,), answers, batch, mixture=mixture).of(self.correction)
        bias = found.bias + found.overshoot
        return found.value - self.variance_weight * found.second_moment - self.bias_weight * bias


def _bound(correction: Correction, bound: str | Bound | None, lam: float | None) -> Bound:
    """The bound around an estimate with this correction."""
    if isinstance(bound, Bound):
        lam = getattr(bound, "lam", None) if lam is None else lam
        if type(bound).for_estimate(correction, lam) != bound:
            raise InvalidInput("bound", bound.label, f"a bound for {correction.name} {correction.settings}")
        return bound
    if bound is None:
        return (LogSmoothingBound if correction.depends_on_reward else Unified).for_estimate(correction, lam)
    return BOUNDS[bound].for_estimate(correction, lam)


def batch_summary(
    statistics: tuple[Statistic, ...], answers: Answers, batch: Batch, *, mixture: bool, all_actions: bool = True
) -> Summary:
    """What bounds read of a batch, for all rows of the log: averages that can be differentiated.

    mixture: of deterministic rules that the policy draws from; otherwise of the policies of single draws of the parameters,
    averaged, or of the policy itself where there are none. Where the log lists what may have been played, sums over actions are
    over those, and of all that the policy plays beside them nothing is counted: it is undershoot.
    """
    rewards, p0 = batch.columns["reward"], batch.columns["propensity"]
    rows = int(batch.columns["rounds"][0]) if len(batch.columns["rounds"]) else 1
    own: Tensor = answers.log_probability[:, 0].exp()[None]
    pi: Tensor = None if answers.probabilities is None else answers.probabilities[None]
    pi0: Tensor = batch.logging
    if not mixture and answers.draws is not None:
        own, pi = answers.own_draws, answers.draws
    never: Tensor = 0.0  # (S, b): pi's mass on what is not listed
    if all_actions and batch.logging_ids is not None:
        listed = pi.gather(-1, batch.logging_ids.expand(len(pi), -1, -1))
        never, pi = pi.sum(-1) - listed.sum(-1), listed

    def mean(values: Tensor) -> Tensor:
        """Over rows of the batch and over draws, of what is summed over actions or stands alone, (S, b)."""
        return values.mean(0).sum() / batch.size

    averages = {}
    for one in statistics:
        value, square = (mean(each) for each in logged_terms(one, own, p0, rewards, mixture=mixture))
        complement = mean(logged_terms(one, own, p0, 1 - rewards, mixture=mixture)[0])
        averages[one] = Averages(value, complement, square)
        if all_actions and isinstance(one, Correction):
            averages[one] = replace(
                averages[one],
                expected_square=mean(expected_square(one, pi, pi0, mixture=mixture).sum(-1)),
                undershoot=mean(undershoot(one, pi, pi0).sum(-1) + never),
                overshoot=0.0 if one.never_above else mean(overshoot(one, pi, pi0).sum(-1)),
            )
    return Summary(rows, 0.0, averages, mixture)


__all__ = ["ALPHAS", "BY_AUTHORS", "Heuristic", "PACBayes", "batch_summary"]
